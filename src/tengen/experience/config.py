"""The base of the configs of experience, which a learner draws from."""

from __future__ import annotations

from typing import Self

from tengen.open_config import OpenConfig

__all__ = ["ExperienceConfig"]


class ExperienceConfig(OpenConfig, package="tengen.experience"):
    """What a run keeps of its experience, and how often the learner uses it.

    The agent decides which kind of config it accepts, and opens the experience.
    """

    @property
    def is_queue(self) -> bool:
        """Whether every item is used once and then removed."""
        return False

    @property
    def games_of_model(self) -> int:
        """Games each model must play before the learner makes the next; 0: none."""
        return 0

    def starting_with(self, num_rows: int) -> Self:
        """Returns the config where learning may begin after so many rows.

        Args:
            num_rows: Rows of the first generation, at least 1. The config never waits
                for more rows than before.
        """
        return self

    def checked(self, task: str) -> ExperienceConfig:
        """Returns the config with full paths of the files that it names, after checks.

        Called before a run begins.

        Args:
            task: The run's task.

        Raises:
            UsageError: A file does not exist or cannot be used.
        """
        return self
