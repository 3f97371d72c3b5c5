"""Sealed segments that arrive in pieces, and are published whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tengen import _core
from tengen.errors import RunError, UsageError
from tengen.experience import SegmentReader
from tengen.experience.games.files import SET_ASIDE, writer_files
from tengen.experience.games.journal import read_journal
from tengen.experience.games.segment import seal
from tengen.mirror.growing_file import CopiedFiles
from tengen.mirror.messages import MAX_FILE_BYTES
from tengen.run import publish_file, storage_error

__all__ = ["check_claimed", "close_generations", "take_segment"]


def take_segment(
    folder: Path,
    incarnation: int,
    generation: int,
    task: str,
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
        _check(part, generation, task)
        publish_file(final, part.read_bytes())
    with suppress(FileNotFoundError):
        part.unlink()
    for path in writer_files(folder, "journal"):
        if int(path.stem) == generation:
            path.unlink()
            copies.forget(path)
    return True, size


def close_generations(folder: Path, *, were_begun: bool) -> int:
    """Seals what a writer that is gone for good has sent of its generations.

    Args:
        folder: The writer's, whose lock the caller holds.
        were_begun: Whether it may have played what it has not sent; then no number of
            a generation without games is used again.

    Returns:
        How many segments were sealed; generations without games are given up.

    Raises:
        RunError: A journal is damaged, or the disk refuses.
    """
    places: dict[int, Path] = {}
    for path in writer_files(folder, "journal"):
        places[int(path.stem)] = path
        try:
            read_journal(path)
        except (RunError, UsageError):
            # What a peer sent is no journal: nobody is to read it.
            path.rename(path.with_suffix(".refused"))
    num_sealed = 0
    for generation, path in sorted(places.items()):
        num_sealed += seal(folder, generation) is not None
        sealed = {int(one.stem) for one in writer_files(folder, "npz")}
        if were_begun and generation not in sealed:
            # The number is not used again: who was away may have played it.
            path.with_suffix(f".{SET_ASIDE}").touch()
    return num_sealed


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
        part.parent.mkdir(exist_ok=True)
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


def _check(part: Path, generation: int, task: str) -> None:
    """Makes sure that the file is a segment of this generation, before others read it.

    Its columns are read: they are whole, and in their ranges. Whether the moves are
    legal is found out by who replays them.
    """
    try:
        with SegmentReader(part) as reader:
            of = reader.meta.get("game"), reader.generation
            if of != (task, generation) or reader.number("num_games") < 1:
                raise RunError(f"it is of generation {of[1]} of {of[0]}")
            reader.game_columns()
    except (RunError, UsageError) as error:
        part.unlink()
        raise UsageError(
            f"segment (generation {generation}) that arrived is none: {error}"
        ) from error
