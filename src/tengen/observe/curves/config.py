"""Where a run's metrics are written besides its own event files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tengen.config import check, check_literals

__all__ = ["ObserveConfig"]


@dataclass(frozen=True, kw_only=True)
class ObserveConfig:
    """Which programs get a run's metrics; see ``docs/howto/play/seeing.md``."""

    tensorboard: bool = True
    """Whether files for TensorBoard are written to RUN/tensorboard."""
    wandb: str = ""
    """Project of Weights & Biases that the run's metrics are sent to, by the package
    wandb. Empty for none."""
    wandb_mode: Literal["auto", "online", "offline"] = "auto"
    """offline keeps what wandb would send in RUN/wandb, for wandb sync, and needs no
    network; auto is what the variable WANDB_MODE says, else online."""

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            UsageError: A field has a value that it may not have.
        """
        check_literals(self)
        check(
            "/" not in self.wandb,
            "wandb",
            self.wandb,
            "must be the name of a project; the variable WANDB_ENTITY says whose it is",
        )
