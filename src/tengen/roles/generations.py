"""How far self-play is: read from the names of its sealed segments."""

from __future__ import annotations

from tengen.run import RunDirectory

__all__ = ["WRITER", "sealed_generations"]

WRITER = "selfplay-0"
"""The writer of the run's games, a folder of ``RUN/experience``."""


def sealed_generations(run: RunDirectory) -> int:
    """Returns the newest sealed generation, 0 where there is none."""
    segments = (run.experience / WRITER).glob("*/*.npz")
    # Temporaries of killed writers, also of other hosts, may lie beside them.
    return max((int(p.stem) for p in segments if p.stem.isdecimal()), default=0)
