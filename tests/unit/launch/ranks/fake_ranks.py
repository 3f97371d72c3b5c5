"""Ranks without MPI: what they say of themselves."""

from __future__ import annotations

from tengen.launch.ranks.table import RankInfo

__all__ = ["info"]


def info(rank: int, host: str = "a", cores: int = 4, **fields: object) -> RankInfo:
    known: dict[str, object] = {"version": "1.0", "python": "3.11", **fields}
    return RankInfo(rank=rank, host=host, cores=cores, **known)
