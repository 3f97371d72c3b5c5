"""Sealed segments that arrive in pieces, and are published whole or not at all."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path

import numpy as np

from tengen import _core
from tengen.errors import RunError, UsageError
from tengen.experience import SegmentReader
from tengen.experience.games.files import writer_files
from tengen.experience.games.generations import give_up_numbers
from tengen.experience.games.journal import JournalContents, core_errors, read_journal
from tengen.experience.games.segment import seal
from tengen.experience.games.writer import games_meta
from tengen.mirror.growing_file import CopiedFiles
from tengen.mirror.messages import MAX_FILE_BYTES
from tengen.run import (
    RunDirectory,
    find_files,
    publish_file,
    storage_error,
    sync_directory,
)

__all__ = ["check_claimed", "close_generations", "take_segment"]

# Magic, schema, bytes of the meta, and the checksum of these and the meta.
_HEADER = struct.Struct("<8sIII")


def take_segment(
    folder: Path,
    incarnation: int,
    generation: int,
    task: str,
    newest_model: int | None,
    total: tuple[int, int],
    piece: tuple[int, bytes],
    copies: CopiedFiles,
) -> tuple[bool, int]:
    """Takes a piece of a segment; with the last one publishes it. Blocks.

    A segment that is there already is not taken again, and journals go once their
    segment is there, so that games come once whatever is sent twice.

    Args:
        folder: The writer's, whose lock the caller holds.
        incarnation: The folder below it that the segment is for.
        generation: The segment's, which was claimed for this writer.
        task: Of the run.
        newest_model: That the run has published.
        total: The segment's bytes and CRC-32C.
        piece: Where the piece begins, and its bytes.
        copies: Forgets the journals.

    Returns:
        Whether the segment is published, and how many bytes of it are here.

    Raises:
        UsageError: Another segment has the place, the generation was not claimed for
            this writer or was given up, or what arrived is none of it.
        RunError: The disk refuses, or what arrived is damaged.
    """
    size, crc = total
    if size > MAX_FILE_BYTES:
        raise UsageError(f"segment ({size} bytes) must be at most {MAX_FILE_BYTES}")
    final = folder / str(incarnation) / f"{generation:06d}.npz"
    part = final.with_suffix(".part")
    if final.exists():
        if _crc_of(final) != (size, crc):
            raise UsageError(
                f"segment ({final.name} of {folder.name}) is sealed already with "
                f"other games; remove the mirror's folder and start it again"
            )
    else:
        check_claimed(folder, generation)
        held = _append(part, *piece)
        if held < size:
            return False, held
        if _crc_of(part) != (size, crc):
            part.unlink()
            raise RunError(
                f"segment ({final.name} of {folder.name}) arrived damaged; it is sent "
                f"again"
            )
        _check(part, generation, task, newest_model)
        publish_file(final, part.read_bytes())
    with suppress(FileNotFoundError):
        part.unlink()
    for path in writer_files(folder, "journal"):
        if int(path.stem) == generation:
            path.unlink()
            copies.forget(path)
    return True, size


def close_generations(
    run: RunDirectory, folder: Path, task: str, *, were_begun: bool
) -> int:
    """Seals what a writer that is gone for good has sent of its generations.

    Args:
        run: The run.
        folder: The writer's, whose lock the caller holds.
        task: Of the run.
        were_begun: Whether it may have played what it has not sent; then no number of
            a generation without games is used again.

    Returns:
        How many journals are none, which stay as ``.refused``.

    Raises:
        RunError: The disk refuses; what was not sealed yet stays for another call.
    """
    places = {int(path.stem): path for path in writer_files(folder, "journal")}
    num_games = dict.fromkeys(places, 0)
    num_refused = 0
    try:
        for path in writer_files(folder, "journal"):
            contents = _read_sent(path, task)
            if contents is None:
                path.rename(path.with_suffix(".refused"))
                num_refused += 1
            else:
                num_games[int(path.stem)] += len(contents.frames)
        newest = max(places, default=0)
        if were_begun and places and num_games[newest] == 0:
            give_up_numbers(run, newest)
        for generation in sorted(places):
            seal(folder, generation)
        for part in find_files(folder, "*/*.part"):
            part.unlink()
    except OSError as error:
        raise storage_error(folder, error) from error
    for incarnation in folder.iterdir():
        with suppress(OSError):  # it holds something, or is a file
            incarnation.rmdir()
    return num_refused


def _read_sent(path: Path, task: str) -> JournalContents | None:
    """Returns what a peer sent as a journal; None: it is none of games of this task.

    Raises:
        OSError, RunError: The disk refuses: whether it is one is not known.
    """
    generation = int(path.stem)
    data = path.read_bytes()
    try:
        contents = read_journal(path)
    except UsageError:
        return None
    except RunError:
        if _has_header(data):
            raise
        return None
    if contents.meta != games_meta(task, generation):
        return None
    try:
        with core_errors():
            _core.merge_games(contents.frames, generation)
    except (RunError, UsageError):
        return None
    return contents


def _has_header(data: bytes) -> bool:
    """Returns whether a journal begins whole, see docs/reference/store_format.md."""
    if len(data) < _HEADER.size:
        return False
    _, _, meta_size, crc = _HEADER.unpack_from(data)
    meta = data[_HEADER.size : _HEADER.size + meta_size]
    return bool(_core.crc32c(data[: _HEADER.size - 4] + meta) == crc)


def check_claimed(folder: Path, generation: int) -> None:
    """Makes sure that a generation was claimed for a writer, and is not sealed.

    Raises:
        UsageError: It was not, or was given up.
    """
    if all(int(path.stem) != generation for path in writer_files(folder, "journal")):
        raise UsageError(
            f"generation ({generation}) was not claimed for {folder.name}, or was "
            f"given up; remove the mirror's folder and start the role again"
        )


def _append(part: Path, offset: int, data: bytes) -> int:
    """Returns how many bytes of a segment are here; a piece behind a gap is left."""
    try:
        # Of a writer that has sent nothing else of this incarnation.
        if not part.parent.exists():
            part.parent.mkdir()
            sync_directory(part.parent.parent)
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if offset == 0:
                os.ftruncate(descriptor, 0)
            held = os.fstat(descriptor).st_size
            if offset != held:
                return held
            written = os.pwrite(descriptor, data, offset)
            if written != len(data):
                raise OSError(28, os.strerror(28))
            return held + written
        finally:
            os.close(descriptor)
    except OSError as error:
        raise storage_error(part, error) from error


def _crc_of(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    return len(data), int(_core.crc32c(data))


def _check(part: Path, generation: int, task: str, newest: int | None) -> None:
    """Makes sure that the file is a segment of this generation, before others read it.

    Its columns are read: they are whole, and in their ranges. Whether the moves are
    legal is found out by who replays them.
    """
    try:
        with SegmentReader(part) as reader:
            of = reader.meta.get("game"), reader.generation
            if of != (task, generation) or reader.number("num_games") < 1:
                raise RunError(f"it is of generation {of[1]} of {of[0]}")
            columns = reader.game_columns()
        models = np.concatenate([columns["model"], columns["switch_model"]])
        unknown = models if newest is None else models[models > newest]
        if unknown.size > 0:
            raise RunError(
                f"it has games by model {unknown.max()}, which the run has not "
                f"published; remove the mirror's folder and start the role again"
            )
    except (RunError, UsageError) as error:
        part.unlink()
        raise UsageError(
            f"segment (generation {generation}) that arrived is none: {error}"
        ) from error
