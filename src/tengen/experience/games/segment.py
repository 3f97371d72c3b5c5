"""Sealed segments: the permanent form of a generation's journals.

A generation has several segments if parts of it were sealed before the rest was played.

``seal`` can be killed at any time and called again. It publishes the segment before it
removes a journal, and skips games of earlier segments, so no game is lost or stored
twice. Paths: ``<writer>/<incarnation>/<generation>.journal`` and ``.npz``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tengen import _core
from tengen.errors import RunError
from tengen.experience.games.archive import ArchiveReader, pack
from tengen.experience.games.files import SET_ASIDE, writer_files
from tengen.experience.games.journal import JournalGap, core_errors, read_journal
from tengen.run.publish import publish_file, reach

GAME_COLUMNS: dict[str, DTypeLike] = {
    "game_index": np.uint32,
    "outcome": np.uint8,
    "model": np.uint32,
    "num_variant_bytes": np.uint8,
    "variant": np.uint8,
    "num_opening_plies": np.uint16,
    "num_plies": np.uint16,
    "num_switches": np.uint16,
    "switch_ply": np.uint16,
    "switch_model": np.uint32,
    "opening": np.uint16,
    "action": np.uint16,
    "root_value": np.float32,
    "policy_weight": np.float32,
    "value_weight": np.float32,
    "num_simulations": np.uint32,
    "lead": np.int16,
    "num_policy_entries": np.uint16,
    "policy_action": np.uint16,
    "policy_mass": np.uint16,
}
"""Dtype of each column that a reader returns; see docs/reference/store_format.md."""

# Maximum item size of a stored column, in bytes, by the kinds of its dtype.
_WIDEST = {"iu": 8, "f": 4}

_LEAD_SCHEMA = 4  # the first archive schema with the column ``lead``


class SegmentReader(ArchiveReader):
    """A reader of a sealed segment, which returns columns in their declared dtypes.

    Attributes:
        generation: The generation of the segment's games.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self.generation = self.number("generation")
        except BaseException:
            self.close()
            raise

    @staticmethod
    def advice(path: Path) -> str:
        """Returns advice for the error about a missing or damaged segment."""
        aside = path.with_suffix(f".{SET_ASIDE}").name
        return (
            f"restore it from a copy, or create a file {aside} beside it to continue "
            "without its games"
        )

    def column(self, name: str) -> NDArray[Any]:
        """Returns a column in its declared dtype, an array with one axis.

        Raises:
            RunError: The column is absent or damaged.
        """
        if name == "lead" and self.meta["schema"] < _LEAD_SCHEMA:
            return np.full(len(self.column("action")), _core.NO_LEAD, np.int16)
        column = self.read(name)
        if column.ndim != 1:
            raise self._damaged(f"column {name} has {column.ndim} axes")
        wanted = np.dtype(GAME_COLUMNS[name])
        is_whole = wanted.kind in "iu"
        kinds = "iu" if is_whole else "f"
        if column.dtype.kind not in kinds or column.itemsize > _WIDEST[kinds]:
            raise self._damaged(f"column {name} has dtype {column.dtype}")
        if is_whole and column.size > 0:
            bounds = np.iinfo(wanted)
            if not (column.min() >= bounds.min and column.max() <= bounds.max):
                raise self._damaged(f"column {name} has values out of range")
        return column.astype(wanted, copy=False)

    def game_columns(self) -> dict[str, NDArray[Any]]:
        """Returns all columns of the segment by name, in their declared dtypes."""
        return {name: self.column(name) for name in GAME_COLUMNS}


class RecordedGames(NamedTuple):
    """The stored games of one generation of a writer."""

    indices: list[int]
    """Indices of the games, in increasing order."""
    gaps: list[JournalGap]
    """Gaps in the journals, where a kill or damage destroyed frames."""
    num_sealed: int = 0
    """Number of the games that are in sealed segments, and so available to learners."""


def recorded_games(writer_directory: Path, generation: int) -> RecordedGames:
    """Returns a generation's stored games, from sealed segments and journals.

    Raises:
        UsageError: A file has an unsupported schema.
        RunError: A segment, or the header of a journal, is damaged.
    """
    found = _sealed_games(writer_directory, generation)
    num_sealed = len(found)
    gaps: list[JournalGap] = []
    for path in _of_generation(writer_directory, generation, "journal"):
        contents = read_journal(path)
        found.update(_game_index(frame) for frame in contents.frames)
        gaps += contents.gaps
    return RecordedGames(sorted(found), gaps, num_sealed)


def seal(
    writer_directory: Path, generation: int, *, leave: Path | None = None
) -> Path | None:
    """Writes all games in a generation's journals to a segment; removes the journals.

    The segment's bytes depend only on the games, not on the order in which they
    finished, nor on how often the writer was killed. The caller must be the only writer
    of ``writer_directory``, and must have closed its journal.

    Args:
        writer_directory: ``RUN/experience/<writer>``.
        generation: The generation.
        leave: A journal to skip, which may be open; None to seal all journals.

    Returns:
        Path of the new segment; None if all games in the journals are sealed already.

    Raises:
        UsageError: A journal has an unsupported schema.
        RunError: A file is damaged, or the disk is full; the journals remain.
    """
    paths = _of_generation(writer_directory, generation, "journal")
    paths = [path for path in paths if path != leave]
    if not paths:
        return None
    journals = [read_journal(path) for path in paths]
    meta = journals[0].meta
    for path, journal in zip(paths, journals, strict=True):
        if journal.meta != meta or journal.meta.get("generation") != generation:
            raise RunError(
                f"journal ({path}) must be for the game and generation of {paths[0]}; "
                "move it out of the run"
            )
    known = _sealed_games(writer_directory, generation)
    frames = [
        frame
        for journal in journals
        for frame in journal.frames
        if _game_index(frame) not in known
    ]
    sealed = None
    if frames:
        sealed = _free_place(writer_directory, paths[-1])
        reach("seal.gathered", sealed)
        publish_file(sealed, _packed(meta, frames))
        reach("seal.published", sealed)
    for path in paths:
        path.unlink()
        reach("seal.journal_removed", path)
    return sealed


def _free_place(writer_directory: Path, journal: Path) -> Path:
    """Returns the path for the segment of ``journal``, in the journal's folder.

    If the user has excluded a segment of that name, the path is in the folder of the
    newest incarnation instead.
    """
    sealed = journal.with_suffix(".npz")
    if sealed.with_suffix(f".{SET_ASIDE}").exists():
        folders = writer_directory.iterdir()
        newest = max(int(path.name) for path in folders if path.name.isdecimal())
        sealed = writer_directory / str(newest) / sealed.name
    if any(sealed.with_suffix(f".{suffix}").exists() for suffix in ("npz", SET_ASIDE)):
        raise RunError(
            f"segment ({sealed}) is already sealed, but its journal has more games; "
            "restart the role, which then uses a new incarnation"
        )
    return sealed


def _packed(meta: dict[str, Any], frames: list[bytes]) -> bytes:
    with core_errors():
        columns = _core.merge_games(frames, meta["generation"])
    # float16 is precise enough for values averaged over some 100 simulations.
    for name in ("root_value", "policy_weight", "value_weight"):
        columns[name] = columns[name].astype(np.float16)
    is_row = (columns["policy_weight"] > 0) | (columns["value_weight"] > 0)
    counts = {"num_games": len(columns["game_index"]), "num_rows": int(is_row.sum())}
    return pack({**meta, **counts}, columns, deflates=True)


def _sealed_games(writer_directory: Path, generation: int) -> set[int]:
    found: set[int] = set()
    for path in _of_generation(writer_directory, generation, "npz"):
        with SegmentReader(path) as reader:
            found.update(reader.column("game_index").tolist())
    return found


def _game_index(frame: bytes) -> int:
    with core_errors():
        return int(_core.decode_game(frame).game_index)


def _of_generation(writer_directory: Path, generation: int, suffix: str) -> list[Path]:
    files = writer_files(writer_directory, suffix)
    return [path for path in files if int(path.stem) == generation]
