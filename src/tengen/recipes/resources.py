"""What a run is given, from which recipes make its config."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Resources"]


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Time and cores of a run.

    GPUs are not among them: how much one computes was never measured, so that a run
    has the same config with a GPU as without.

    The default is ten minutes on two cores, which is also what recipes are tuned on. It
    is for runs whose length nobody knows, so that a run by ``--games`` has one config
    whatever the cores.
    """

    minutes: float = 10.0
    """Wall time, above 0."""
    num_threads: int = 2
    """Threads of the CPU, at least 1."""

    @property
    def core_minutes(self) -> float:
        """How much can be computed, in minutes of one core."""
        return self.minutes * self.num_threads
