"""Games of Go as SGF, the form that other programs read and write.

record = read_sgf(path.read_bytes())
state, moves = replay(record)
path.write_text(write_sgf(record), encoding="utf-8")
"""

from tengen.games.sgf.read import read_sgf
from tengen.games.sgf.record import GoRecord, replay, setup_moves
from tengen.games.sgf.write import write_sgf

__all__ = ["GoRecord", "read_sgf", "replay", "setup_moves", "write_sgf"]
