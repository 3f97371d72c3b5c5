"""Checks games that a mirror sent, and publishes or seals their segments."""

from __future__ import annotations

import struct
from collections.abc import Callable
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
from tengen.remote.copies import CopiedFiles, Prefix
from tengen.run import RunDirectory, find_files, storage_error, sync_directory

# A journal's header: magic, schema, metadata size, CRC-32C of these and the metadata.
_HEADER = struct.Struct("<8sIII")


def append_segment(
    folder: Path,
    incarnation: int,
    generation: int,
    whole: Prefix,
    piece: tuple[Prefix, bytes],
    copies: CopiedFiles,
    check: Callable[[Path], None],
) -> int:
    """Appends a chunk to a segment, and publishes the complete segment. Blocks.

    Idempotent: a segment is published only once, and the journals of its generation are
    then removed, so each game counts once even if the mirror sends it twice.

    Args:
        folder: The writer's folder, whose lock the caller holds.
        incarnation: The writer's incarnation, which names the segment's subfolder.
        generation: The segment's generation.
        whole: The size and CRC-32 of the complete segment.
        piece: The size and CRC-32 of the bytes before the chunk, and the chunk.
        copies: The copies of mirrors' files on this host.
        check: Raises UsageError if a file is not a valid segment.

    Returns:
        The number of bytes of the segment on this host.

    Raises:
        UsageError: A different segment of this generation is published, the generation
            was not claimed for this writer or was given up, or ``check`` rejects the
            file.
        RunError: A file operation failed, or the segment arrived damaged.
    """
    final = folder / str(incarnation) / f"{generation:06d}.npz"
    try:
        if final.exists():
            if copies.prefix(final) != whole:
                raise UsageError(
                    f"segment ({final.name} of {folder.name}) is sealed already with "
                    "other games; remove the mirror's folder, and start the role again"
                )
        else:
            check_claimed(folder, generation)
            final.parent.mkdir(exist_ok=True)
            part = final.with_suffix(f".{whole.crc:08x}.part")
            held = _append(part, whole, piece, copies)
            if held < whole.size:
                return held
            try:
                check(part)
            except UsageError:
                copies.remove(part)
                raise
            part.rename(final)
            sync_directory(final.parent)
            copies.remove(part)
        # Remove the journals last: a generation without files counts as not claimed.
        found = find_files(folder, f"*/{generation:06d}.journal")
        for path in found + find_files(folder, f"*/{generation:06d}.*.part"):
            copies.remove(path)
    except OSError as error:
        raise storage_error(final, error) from error
    return whole.size


def _append(
    part: Path, whole: Prefix, piece: tuple[Prefix, bytes], copies: CopiedFiles
) -> int:
    """Appends a chunk to a partial segment; returns the size. Removes damaged files."""
    before, data = piece
    held = copies.prefix(part)
    if before.size != held.size or before == held:
        size = copies.append(part, before, data)
        if size < whole.size or copies.prefix(part) == whole:
            return size
    copies.remove(part)
    raise RunError(f"segment ({part.name}) arrived damaged; it is sent again")


def close_generations(
    run: RunDirectory, folder: Path, task: str, *, were_begun: bool
) -> int:
    """Seals all games that a writer sent before it lost its slot.

    Args:
        run: The run.
        folder: The writer's folder, whose lock the caller holds.
        task: The run's task.
        were_begun: Whether the writer may have played generations that it has not sent.
            If so, the numbers of these generations are not reused.

    Returns:
        The number of invalid journals, which are renamed to ``*.refused``.

    Raises:
        RunError: A file operation failed. Another call seals the remaining games.
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
        with suppress(OSError):  # not empty, or a file
            incarnation.rmdir()
    return num_refused


def _read_sent(path: Path, task: str) -> JournalContents | None:
    """Reads a journal that a mirror sent. Returns None if it is invalid for ``task``.

    Raises:
        OSError, RunError: The journal could not be read, so its validity is unknown.
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
    """Returns whether a journal's header is intact (docs/reference/store_format.md)."""
    if len(data) < _HEADER.size:
        return False
    _, _, meta_size, crc = _HEADER.unpack_from(data)
    meta = data[_HEADER.size : _HEADER.size + meta_size]
    return bool(_core.crc32c(data[: _HEADER.size - 4] + meta) == crc)


def check_claimed(folder: Path, generation: int) -> None:
    """Checks that a generation has been claimed for a writer and is not sealed.

    Raises:
        UsageError: The generation is not claimed, or the writer has lost its slot.
    """
    if all(int(path.stem) != generation for path in writer_files(folder, "journal")):
        raise UsageError(
            f"generation ({generation}) was not assigned to {folder.name}, or was "
            "given up; remove the mirror's folder, and start the role again"
        )


def check_segment(part: Path, generation: int, task: str, newest: int | None) -> None:
    """Checks that a received file is a valid segment, before it is published.

    Reading all columns checks that they are complete and in range. Moves are checked
    later, by the code that replays the games.

    Args:
        part: The path of the received file.
        generation: The expected generation.
        task: The run's task.
        newest: The number of the run's newest published model; None if there is none.

    Raises:
        UsageError: The file is not a segment of this generation and task, or has games
            of models that the run does not have.
    """
    try:
        with SegmentReader(part) as reader:
            found = reader.meta.get("game"), reader.generation
            if found != (task, generation) or reader.number("num_games") < 1:
                raise RunError(f"it is for generation {found[1]} of {found[0]}")
            columns = reader.game_columns()
        models = np.concatenate([columns["model"], columns["switch_model"]])
        unknown = models if newest is None else models[models > newest]
        if unknown.size > 0:
            raise RunError(
                f"it has games by model {unknown.max()}, which the run has not "
                f"published; remove the mirror's folder and start the role again"
            )
    except (RunError, UsageError) as error:
        raise UsageError(
            f"segment (generation {generation}) arrived invalid: {error}"
        ) from error
