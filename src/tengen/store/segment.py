"""Sealed segments: what the journals of one generation become, for good.

``seal`` may be killed at any instant and called again: it publishes the segment before
it removes a journal, and leaves out what an earlier segment holds, so that no game or
item is lost or doubled. Layout: ``<writer>/<incarnation>/<generation>.journal`` and
``.npz``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tengen import _core
from tengen.errors import RunError
from tengen.run.faults import reach
from tengen.run.publish import publish_file
from tengen.store.archive import ArchiveReader, pack
from tengen.store.core_errors import core_errors
from tengen.store.items import Item, ItemSchema

__all__ = [
    "GAME_COLUMNS",
    "SegmentReader",
    "journals",
    "recorded_games",
    "recover_journal",
    "seal",
    "segments",
]

GAME_COLUMNS: dict[str, DTypeLike] = {
    "game_index": np.uint32,
    "outcome": np.uint8,
    "model": np.uint32,
    "num_opening_plies": np.uint16,
    "num_plies": np.uint16,
    "opening": np.uint16,
    "action": np.uint16,
    "root_value": np.float32,
    "policy_weight": np.float32,
    "value_weight": np.float32,
    "num_simulations": np.uint32,
    "num_policy_entries": np.uint16,
    "policy_action": np.uint16,
    "policy_mass": np.uint16,
}
"""Type of each column of a game segment as read; see docs/store_format.md."""


class SegmentReader(ArchiveReader):
    """A sealed segment: an archive whose columns come in their declared types.

    Attributes:
        generation: Of all its games or items.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.generation = int(self.meta["generation"])

    def column(self, name: str) -> NDArray[Any]:
        """Returns a column in its declared type, ``[num_games]`` or flat by ply.

        Raises:
            RunError: The column is absent or damaged.
        """
        array = self.read(name)
        if self.meta["kind"] == "games":
            return array.astype(GAME_COLUMNS[name], copy=False)
        declared = {spec["name"]: spec["dtype"] for spec in self.meta["columns"]}
        return array.astype(declared.get(name, array.dtype), copy=False)

    def game_columns(self) -> dict[str, NDArray[Any]]:
        """Returns every column of a game segment."""
        return {name: self.column(name) for name in GAME_COLUMNS}


def journals(writer_directory: Path, generation: int) -> list[Path]:
    """Returns the generation's journals, the oldest incarnation first."""
    return _of_generation(writer_directory, generation, "journal")


def segments(writer_directory: Path, generation: int) -> list[Path]:
    """Returns the generation's sealed segments, the oldest incarnation first."""
    return _of_generation(writer_directory, generation, "npz")


def recover_journal(path: Path) -> tuple[dict[str, Any], list[bytes]]:
    """Returns the meta and the frames of a journal whose writer is gone or closed it.

    Cuts off a torn tail, which was never reported durable.

    Raises:
        UsageError: The file is of a newer schema.
        RunError: The file is not a journal, or its header is damaged.
    """
    with core_errors():
        meta, frames, _ = _core.recover(str(path))
    return json.loads(meta), frames


def recorded_games(writer_directory: Path, generation: int) -> list[int]:
    """Returns the indices of the games that the writer keeps, in increasing order."""
    found: set[int] = set()
    for path in segments(writer_directory, generation):
        with SegmentReader(path) as reader:
            found.update(reader.column("game_index").tolist())
    for path in journals(writer_directory, generation):
        _, frames = recover_journal(path)
        found.update(_game_index(frame) for frame in frames)
    return sorted(found)


def seal(writer_directory: Path, generation: int) -> Path | None:
    """Makes one segment of all that the generation's journals hold, then removes them.

    The bytes depend on the games alone: not on the order in which they finished, nor on
    how often the writer was killed. The caller is the only process that writes there,
    and has closed its journal.

    Args:
        writer_directory: ``RUN/experience/<writer>``.
        generation: Which one.

    Returns:
        The new segment, or None where the journals hold nothing that is not sealed.

    Raises:
        UsageError: A journal is of a newer schema.
        RunError: A file is damaged, or the disk is full; the journals stay.
    """
    paths = journals(writer_directory, generation)
    if not paths:
        return None
    contents = [recover_journal(path) for path in paths]
    meta = contents[0][0]
    for path, (other, _) in zip(paths, contents, strict=True):
        if other != meta or other.get("generation") != generation:
            raise RunError(
                f"journal ({path}) must be of the same kind and generation as "
                f"{paths[0]}; move it out of the run"
            )
    frames = [frame for _, part in contents for frame in part]
    earlier = segments(writer_directory, generation)
    columns, counts = _KINDS[meta["kind"]](meta, frames, earlier)
    sealed = None
    if columns is not None:
        sealed = paths[-1].with_suffix(".npz")
        if sealed.exists():
            raise RunError(
                f"segment ({sealed}) is sealed already, but its journal has more; "
                f"write further games in a new incarnation"
            )
        reach("seal.gathered")
        publish_file(sealed, pack({**meta, **counts}, columns))
        reach("seal.published")
    for path in paths:
        path.unlink()
        reach("seal.journal_removed")
    return sealed


_Columns = dict[str, NDArray[Any]]
_Sealed = tuple[_Columns | None, dict[str, int]]


def _seal_games(
    meta: dict[str, Any], frames: list[bytes], earlier: list[Path]
) -> _Sealed:
    known: set[int] = set()
    for path in earlier:
        with SegmentReader(path) as reader:
            known.update(reader.column("game_index").tolist())
    if known:
        frames = [frame for frame in frames if _game_index(frame) not in known]
    if not frames:
        return None, {}
    with core_errors():
        columns = _core.merge_games(frames, meta["generation"])
    # 11 bits are plenty for a value that a search of some hundred simulations
    # estimated.
    for name in ("root_value", "policy_weight", "value_weight"):
        columns[name] = columns[name].astype(np.float16)
    is_row = (columns["policy_weight"] > 0) | (columns["value_weight"] > 0)
    counts = {"num_games": len(columns["game_index"]), "num_rows": int(is_row.sum())}
    return columns, counts


def _seal_items(
    meta: dict[str, Any], frames: list[bytes], earlier: list[Path]
) -> _Sealed:
    """Items stay in the order of the journals, which is the order of their arrival."""
    schema = ItemSchema.from_list(meta["columns"])
    known: set[tuple[str, int]] = set()
    for path in earlier:
        with SegmentReader(path) as reader:
            writers = (name.decode() for name in reader.read("writer"))
            known.update(zip(writers, reader.read("sequence").tolist(), strict=True))
    items: list[Item] = []
    for frame in frames:
        item = schema.decode(frame)
        if (item.writer, item.sequence) not in known:
            known.add((item.writer, item.sequence))
            items.append(item)
    if not items:
        return None, {}
    columns: _Columns = {
        "writer": np.array([item.writer.encode() for item in items]),
        "sequence": np.array([item.sequence for item in items], np.uint64),
    }
    for spec in schema.columns:
        columns[spec.name] = np.stack([item.columns[spec.name] for item in items])
    return columns, {"num_items": len(items)}


_KINDS: dict[str, Callable[[dict[str, Any], list[bytes], list[Path]], _Sealed]] = {
    "games": _seal_games,
    "items": _seal_items,
}


def _game_index(frame: bytes) -> int:
    with core_errors():
        return int(_core.decode_game(frame).game_index)


def _of_generation(writer_directory: Path, generation: int, suffix: str) -> list[Path]:
    found = writer_directory.glob(f"*/{generation:06d}.{suffix}")
    return sorted(found, key=lambda path: int(path.parent.name))
