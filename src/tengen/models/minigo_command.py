"""``tengen data import-minigo``: models and examples of MLPerf's minigo.

See docs/howto/train/mlperf_data.md.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tengen.config import check
from tengen.errors import RunError, UsageError
from tengen.games import open_game
from tengen.minigo.checkpoint import Checkpoint
from tengen.minigo.examples import ImportedGeneration, import_examples
from tengen.minigo.graph import FrozenGraph
from tengen.minigo.tensors import TensorFile
from tengen.minigo.weights import read_weights
from tengen.models.export import ModelExporter
from tengen.models.load import ModelMeta
from tengen.models.publish import publish_model
from tengen.nets import board_of
from tengen.observe.progress_line import ProgressLine
from tengen.run import check_writable

__all__ = ["add_arguments", "import_minigo"]


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
