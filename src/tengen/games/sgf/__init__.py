"""Reads and writes games of Go as SGF, the file format of most Go programs.

record = read_sgf(path.read_bytes())
state, moves = replay(record)
path.write_text(write_sgf(record), encoding="utf-8")
"""

from tengen.games.sgf.read import read_sgf
from tengen.games.sgf.record import (
    GoRecord,
    is_fixed_handicap,
    replay,
    setup_moves,
    stones_on,
    write_sgf,
)

__all__ = [
    "GoRecord",
    "is_fixed_handicap",
    "read_sgf",
    "replay",
    "setup_moves",
    "stones_on",
    "write_sgf",
]
