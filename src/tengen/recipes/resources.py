"""What a run is given, from which recipes make its config."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Resources"]

# By how much a GPU computes faster than a core of a CPU, at the least. Not measured: by
# docs/performance_inference.md a core makes 0.2 (bf16) to 0.4 (int8) TFLOP a second
# with networks of 6x96, and GPUs that training is done on promise a hundred or more.
_CORES_OF_A_GPU = 64


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Time and hardware of a run.

    The default is ten minutes on two cores, which is also what recipes are tuned on. It
    is for runs whose length nobody knows, so that a run by ``--games`` has one config
    whatever the cores.
    """

    minutes: float = 10.0
    """Wall time, above 0."""
    num_threads: int = 2
    """Threads of the CPU, at least 1."""
    num_gpus: int = 0
    """GPUs that evaluate for self-play, at least 0."""

    @property
    def core_minutes(self) -> float:
        """How much can be computed, in minutes of one core."""
        cores = max(self.num_threads, self.num_gpus * _CORES_OF_A_GPU)
        return self.minutes * cores
