"""``tengen data import-minigo``: imports models and examples of MLPerf's minigo.

See docs/howto/train/mlperf_data.md. Examples are stored in compressed record files, one
file per game. N is the side length of the board.

Source: MLPerf training v2.1, minigo, ``preprocessing.py`` for the content of examples;
TensorFlow, ``tensorflow/core/lib/io/record_writer.h`` for the record format and
``tensorflow/core/example`` for the fields (Apache License 2.0).
"""

from __future__ import annotations

import argparse
import os
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tengen.config import check
from tengen.errors import RunError, UsageError
from tengen.experience.rows.imported import (
    MAX_SIDE,
    NUM_FEATURES,
    Examples,
    rows_name,
    write_rows,
)
from tengen.games import open_game
from tengen.minigo.tensors import Checkpoint, FrozenGraph, TensorFile
from tengen.minigo.weights import read_weights
from tengen.minigo.wire import Message, check_crc, read_bounded
from tengen.models.export import ModelExporter
from tengen.models.load import ModelMeta
from tengen.models.publish import publish_model
from tengen.nets import board_of
from tengen.observe.progress_line import ProgressLine
from tengen.run import OtherKindError, check_writable, reading_file

Layout: TypeAlias = Literal["nchw", "nhwc"]
"""Axis order of an example's planes: channels first or channels last."""

_WHAT = "examples"
_MAX_BYTES = 1 << 26
_HEADER_BYTES = 12
_CRC_BYTES = 4
# The index of the plane that is all ones if Black is to move.
_BLACK_PLANE = 8
# Tolerance of the check that a float32 policy sums to 1.
_TOLERANCE = 1e-3


def read_examples(path: Path, side: int, layout: Layout) -> Examples:
    """Returns the examples in a ``.tfrecord.zz`` file.

    Args:
        path: The file.
        side: N, the board side that the file must have.
        layout: Axis order of the planes; minigo 0.7 and later write ``nchw``.

    Raises:
        RunError: The file is missing or damaged, or has a different board size.
    """
    rows = []
    with reading_file(_WHAT, path):
        data = memoryview(_inflated(read_bounded(path, _MAX_BYTES)))
        for record in _records(data):
            rows.append(_example(Message(record), side, layout))
    planes = np.empty((len(rows), NUM_FEATURES, side, side), np.uint8)
    policy = np.empty((len(rows), side * side + 1), np.float32)
    outcome = np.empty(len(rows), np.int8)
    for index, row in enumerate(rows):
        planes[index], policy[index], outcome[index] = row
    return Examples(planes, policy, outcome)


def side_of(path: Path) -> int:
    """Returns the board side of a file's first example; 0 if there are no examples.

    Raises:
        RunError: The file is missing or damaged.
    """
    with reading_file(_WHAT, path):
        data = memoryview(_inflated(read_bounded(path, _MAX_BYTES)))
        for record in _records(data):
            num_bytes = len(_features(Message(record))["x"].message(1).raw(1))
            side = int((num_bytes / NUM_FEATURES) ** 0.5 + 0.5)
            is_board = num_bytes == NUM_FEATURES * side * side
            if not is_board or not 2 <= side <= MAX_SIDE:
                raise ValueError(f"x has {num_bytes} bytes, not 13 per board point")
            return side
    return 0


def _inflated(data: bytes) -> bytes:
    machine = zlib.decompressobj()
    try:
        found = machine.decompress(data, _MAX_BYTES)
    except zlib.error as error:
        raise ValueError(f"it is not compressed with zlib, {error}") from error
    if machine.unconsumed_tail:
        raise ValueError(f"it has more than {_MAX_BYTES} bytes")
    if not machine.eof or machine.unused_data:
        raise ValueError("it is truncated, or has data after its end")
    return found


def _records(data: memoryview) -> Iterator[memoryview]:
    place = 0
    while place < len(data):
        header = data[place : place + _HEADER_BYTES]
        if len(header) < _HEADER_BYTES:
            raise ValueError("one of its records is truncated")
        check_crc(header[:8], int.from_bytes(header[8:], "little"), "a length")
        place += _HEADER_BYTES
        length = int.from_bytes(header[:8], "little")
        if length + _CRC_BYTES > len(data) - place:
            raise ValueError("one of its records is truncated")
        record = data[place : place + length]
        place += length
        crc = int.from_bytes(data[place : place + _CRC_BYTES], "little")
        check_crc(record, crc, "a record")
        place += _CRC_BYTES
        yield record


def _features(example: Message) -> dict[str, Message]:
    found = {
        entry.text(1): entry.message(2) for entry in example.message(1).messages(1)
    }
    for name in ("x", "pi", "outcome"):
        if name not in found:
            raise ValueError(f"an example has no {name}")
    return found


def _example(
    example: Message, side: int, layout: Layout
) -> tuple[NDArray[np.uint8], NDArray[np.float32], int]:
    features = _features(example)
    planes = np.frombuffer(features["x"].message(1).raw(1), np.uint8)
    num_cells = side * side
    if planes.size != NUM_FEATURES * num_cells:
        raise ValueError(f"x is not {NUM_FEATURES} planes of side {side}")
    if layout == "nhwc":
        planes = planes.reshape(num_cells, NUM_FEATURES).T
    planes = planes.reshape(NUM_FEATURES, side, side)
    if planes.max() > 1:
        raise ValueError("x has values other than 0 and 1")
    black = int(planes[_BLACK_PLANE, 0, 0])
    if (planes[_BLACK_PLANE] != black).any():
        other = "nchw" if layout == "nhwc" else "nhwc"
        raise OtherKindError(
            f"the side to move differs between points; try --layout {other}"
        )
    raw = features["pi"].message(1).raw(1)
    policy = np.frombuffer(raw, "<f4") if len(raw) % 4 == 0 else np.zeros(0, "<f4")
    if policy.size != num_cells + 1:
        raise ValueError(f"pi is not {num_cells + 1} numbers of float32")
    if not policy.min() >= 0 or not abs(float(policy.sum()) - 1.0) < _TOLERANCE:
        raise ValueError("pi is not a distribution")
    won = features["outcome"].message(2).floats(1)
    if won.size != 1 or won[0] not in (-1.0, 0.0, 1.0):
        raise ValueError("outcome is not one of -1, 0 and 1")
    return planes, policy, int(won[0]) * (1 if black else -1)


_GENERATION = re.compile("[0-9]{6}")
_PATTERN = "*.tfrecord.zz"

ImportedGeneration = tuple[int, int, int]
"""A generation's number, its number of games and its number of rows."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen data import-minigo``."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--checkpoint",
        type=Path,
        metavar="PREFIX",
        help="a TensorFlow checkpoint, as its path without .index",
    )
    source.add_argument(
        "--graph", type=Path, metavar="FILE", help="a frozen TensorFlow graph, .pb"
    )
    source.add_argument(
        "--examples",
        type=Path,
        metavar="FOLDER",
        help="examples of self-play: one folder of .tfrecord.zz files per generation, "
        "named with six digits",
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="the folder to create for the model; with --examples, the folder for "
        "their files",
    )
    parser.add_argument(
        "--layout",
        choices=("nchw", "nhwc"),
        default="nchw",
        help="axis order of the planes in examples; nhwc before minigo 0.7 (nchw)",
    )


def import_minigo(args: argparse.Namespace) -> dict[str, Any]:
    """Imports a model or examples of MLPerf's minigo.

    Returns:
        ``out``; for a model also ``task``, ``net`` (blocks and channels) and
        ``num_steps``; for examples ``generations``, ``num_games`` and ``num_rows``.

    Raises:
        UsageError: The source is missing, or is a damaged or unsupported model;
            ``--out`` exists, for a model; or ``--out`` is below a file or not writable.
            Nothing is written.
        RunError: An examples file is damaged, unreadable or unsupported, or a write
            fails.
    """
    _check_out(args.out)
    if args.examples is not None:
        return _import_examples(args)
    if args.checkpoint is not None:
        index = f"{args.checkpoint}.index"
        check(
            os.path.isfile(index),
            "checkpoint",
            args.checkpoint,
            f"must be a path without .index, and {index} is not a file; check the path",
        )
        return _import_model(args, lambda: Checkpoint(args.checkpoint))
    is_file = os.path.isfile(args.graph)
    check(is_file, "graph", args.graph, "must name a file; check the path")
    return _import_model(args, lambda: FrozenGraph(args.graph))


def _check_out(out: Path) -> None:
    """Raises UsageError if the folder ``out`` cannot be created or written."""
    path = out.absolute()
    nearest = next(p for p in (path, *path.parents) if os.path.lexists(p))
    check(
        os.path.isdir(nearest),
        "out",
        out,
        f"must be in a folder, and {nearest} is not one; choose another folder",
    )
    check_writable(out)


def _import_model(
    args: argparse.Namespace, opened: Callable[[], TensorFile]
) -> dict[str, Any]:
    check(not args.out.exists(), "out", args.out, "must be new; choose another folder")
    try:
        weights = read_weights(opened())
    except RunError as error:
        # Nothing has been written yet, so report an unsuitable file as a usage error.
        raise UsageError(str(error)) from error
    task = f"go/{weights.side}/nosuicide/planes=minigo"
    meta = ModelMeta(
        task=task,
        agent="alphazero",
        net=weights.config,
        signature=weights.config.signature(board_of(open_game(task)).signature),
        generation=0,
        num_steps=weights.num_steps,
        num_samples=0,
        sha256={},
    )
    args.out.absolute().parent.mkdir(parents=True, exist_ok=True)
    with ProgressLine("making the model's graph"):
        publish_model(args.out, meta, weights.tensors, ModelExporter())
    net = f"{weights.config.num_blocks}x{weights.config.num_channels}"
    if not args.json:
        print(f"{args.out}: {net} for {task}, {weights.num_steps} steps")
    return {
        "out": str(args.out),
        "task": task,
        "net": net,
        "num_steps": weights.num_steps,
    }


def _import_examples(args: argparse.Namespace) -> dict[str, Any]:
    with ProgressLine("reading examples") as line:

        def watch(done: ImportedGeneration) -> None:
            number, num_games, num_rows = done
            text = f"{number:06d}: {num_games} games, {num_rows} rows"
            line.tell(f"read {text}")
            if not args.json:
                line.leave(text)

        done = import_examples(args.examples, args.out, args.layout, watch)
    return {
        "out": str(args.out),
        "generations": [number for number, _, _ in done],
        "num_games": sum(num_games for _, num_games, _ in done),
        "num_rows": sum(num_rows for _, _, num_rows in done),
    }


def import_examples(
    source: Path,
    out: Path,
    layout: Layout,
    watch: Callable[[ImportedGeneration], None],
) -> list[ImportedGeneration]:
    """Imports all generations; returns what was written for each. Blocks.

    Games are numbered in the order of their paths, folder by folder. Existing output
    files are replaced. Memory holds one generation, packed, at a time.

    Args:
        source: A folder of folders ``NNNNNN``, each with ``.tfrecord.zz`` files at any
            depth, one file per game.
        out: The output folder, created if missing.
        layout: Axis order of the planes in an example.
        watch: Called with each generation after it has been written.

    Raises:
        UsageError: ``source`` has no examples.
        RunError: A file is damaged, or a write fails. The output files of the
            generations before it are complete.
    """
    found = {
        int(folder.name): sorted(folder.rglob(_PATTERN))
        for folder in sorted(_folders(source))
    }
    generations = {number: paths for number, paths in found.items() if paths}
    if not generations:
        raise UsageError(
            f"examples ({source}) must be a folder of folders named with six digits "
            f"that contain {_PATTERN} files; check the path"
        )
    side = next(
        (
            side
            for paths in generations.values()
            for path in paths
            if (side := side_of(path))
        ),
        0,
    )
    if side == 0:
        raise UsageError(f"examples ({source}) have no rows; check the path")
    out.mkdir(parents=True, exist_ok=True)
    done = []
    for number, paths in generations.items():
        games = (read_examples(path, side, layout) for path in paths)
        told = str(source / f"{number:06d}")
        counts = write_rows(out / rows_name(number), games, side, number, told)
        done.append((number, *counts))
        watch(done[-1])
    return done


def _folders(source: Path) -> list[Path]:
    if not source.is_dir():
        return []
    return [
        path
        for path in source.iterdir()
        if path.is_dir() and _GENERATION.fullmatch(path.name)
    ]
