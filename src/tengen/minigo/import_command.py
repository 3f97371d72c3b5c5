"""``tengen data import-minigo``: models and examples of MLPerf's minigo.

See docs/howto/train/mlperf_data.md.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tengen.config import check
from tengen.errors import RunError, UsageError
from tengen.experience.rows.imported import rows_name, write_rows
from tengen.games import open_game
from tengen.minigo.records import Layout, read_examples, side_of
from tengen.minigo.tensors import Checkpoint, FrozenGraph, TensorFile
from tengen.minigo.weights import read_weights
from tengen.models.export import ModelExporter
from tengen.models.load import ModelMeta
from tengen.models.publish import publish_model
from tengen.nets import board_of
from tengen.observe.progress_line import ProgressLine
from tengen.run import check_writable

__all__ = ["add_arguments", "import_examples", "import_minigo"]

_GENERATION = re.compile("[0-9]{6}")
_PATTERN = "*.tfrecord.zz"

ImportedGeneration = tuple[int, int, int]
"""Number of a generation, and its games and rows."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``data import-minigo``."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--checkpoint",
        type=Path,
        metavar="PREFIX",
        help="a TensorFlow checkpoint, its path without .index",
    )
    source.add_argument(
        "--graph", type=Path, metavar="FILE", help="a frozen TensorFlow graph, .pb"
    )
    source.add_argument(
        "--examples",
        type=Path,
        metavar="FOLDER",
        help="examples of self-play: one folder of .tfrecord.zz files for each "
        "generation, named by six digits",
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="the model's folder, which is made; with --examples the folder for "
        "their files",
    )
    parser.add_argument(
        "--layout",
        choices=("nchw", "nhwc"),
        default="nchw",
        help="order of the planes' axes in examples; nhwc before minigo 0.7 (nchw)",
    )


def import_minigo(args: argparse.Namespace) -> dict[str, Any]:
    """Imports a model or examples.

    Returns:
        ``out``, and of a model ``task``, ``net`` (blocks and channels) and
        ``num_steps``; of examples ``generations``, ``num_games`` and ``num_rows``.

    Raises:
        UsageError: An argument names nothing to import, or a model that is damaged or
            of another kind; a model's ``--out`` exists; or ``--out`` lies behind a file
            or cannot be written. Nothing is written.
        RunError: A file of examples is damaged, cannot be read or is of another kind,
            or the disk refuses.
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
            f"must be a path without .index, and {index} is no file; check the path",
        )
        return _import_model(args, lambda: Checkpoint(args.checkpoint))
    is_file = os.path.isfile(args.graph)
    check(is_file, "graph", args.graph, "must name a file; check the path")
    return _import_model(args, lambda: FrozenGraph(args.graph))


def _check_out(out: Path) -> None:
    """Refuses a folder that cannot be made or written."""
    path = out.absolute()
    nearest = next(p for p in (path, *path.parents) if os.path.lexists(p))
    check(
        os.path.isdir(nearest),
        "out",
        out,
        f"must be a folder, and {nearest} is none; choose another folder",
    )
    check_writable(out)


def _import_model(
    args: argparse.Namespace, opened: Callable[[], TensorFile]
) -> dict[str, Any]:
    check(not args.out.exists(), "out", args.out, "must be new; choose another folder")
    try:
        weights = read_weights(opened())
    except RunError as error:
        # Nothing is written yet: the file that was named is no such network.
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
    """Writes the rows of every generation. Blocks; a generation is in memory, packed.

    Games are numbered in the order of their paths, folder by folder. What was written
    before is written again.

    Args:
        source: A folder of folders ``NNNNNN``, each with ``.tfrecord.zz`` files at any
            depth, one a game.
        out: Where the files go; made if it is not there.
        layout: Of the planes in an example.
        watch: Called with each generation that was written.

    Raises:
        UsageError: There are no such files.
        RunError: One is damaged, or the disk refuses. Generations that were written
            before are whole.
    """
    found = {
        int(folder.name): sorted(folder.rglob(_PATTERN))
        for folder in sorted(_folders(source))
    }
    generations = {number: paths for number, paths in found.items() if paths}
    if not generations:
        raise UsageError(
            f"examples ({source}) must be a folder of folders of six digits with "
            f"{_PATTERN} files; check the path"
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
        raise UsageError(f"examples ({source}) have not one row; check the path")
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
