"""The family of configs that say what experience a learner draws from."""

from __future__ import annotations

from tengen.open_config import OpenConfig

__all__ = ["ExperienceConfig"]


class ExperienceConfig(OpenConfig, package="tengen.experience"):
    """What a run keeps of its experience, and how often it is used.

    Which kind it is, is the agent's matter: the agent opens it.
    """

    @property
    def is_queue(self) -> bool:
        """Whether every item is used once, and none is kept for later."""
        return False

    @property
    def games_of_model(self) -> int:
        """Games of one model that the learner waits for before the next; 0: of none."""
        return 0

    def checked(self, task: str) -> ExperienceConfig:
        """Returns the config with files that it names as full paths, made sure of.

        It is called before a run begins.

        Args:
            task: The run's.

        Raises:
            UsageError: They are not there, or cannot serve.
        """
        return self
