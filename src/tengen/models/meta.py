"""What a model directory says about itself: ``meta.json``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tengen.inference.openvino_backend import INT8_FILE, ONNX_FILE
from tengen.nets import NetConfig
from tengen.search import PlayConfig
from tengen.tensors import Signature

__all__ = [
    "GRAPH_FILES",
    "INT8_FILE",
    "META_FILE",
    "MODEL_SCHEMA",
    "ONNX_FILE",
    "WEIGHTS_FILE",
    "ModelDir",
    "ModelMeta",
    "ModelOrigin",
]

MODEL_SCHEMA = 5
"""The version of model directories written here, and the newest that is read."""

META_FILE = "meta.json"
WEIGHTS_FILE = "weights.safetensors"
"""The file that every model has. ``meta.json`` has its sha256."""
GRAPH_FILES = (ONNX_FILE, INT8_FILE)
"""Files that a model may have: a graph where its run reads graphs, and another one
where it plays in int8. ``meta.json`` has the sha256 of each that is there."""


@dataclass(frozen=True, kw_only=True)
class ModelOrigin:
    """What a model was trained on, as its export knew it."""

    run: str
    """The run's folder, as export was given it."""
    seed: int
    """Of the run."""
    checkpoint: int
    """Number of the checkpoint that has its weights."""
    num_games: int | None = None
    """Games that the run had then; None where environments are played."""
    num_rows: int | None = None
    """Rows of these to learn from; None likewise."""
    window_rows: int | None = None
    """Rows that the learner drew from then, the newest; None likewise."""
    pass_generation: int | None = None
    """The newest generation that was learned from for it, named by the model that its
    games ended on, or below 0 an imported one; None where experience does not go by
    generations."""
    pass_games: int | None = None
    """Games that this generation had when it was learned from; None likewise."""
    learned_from_at: float | None = None
    """When the steps began that no earlier model has, UNIX seconds; None in models of
    schema 4 and before."""
    learned_to_at: float | None = None
    """When these were made, UNIX seconds."""
    learn_from: str = ""
    """The run whose games it learned from, empty for its own."""
    initial_model: str = ""
    """The model whose weights the run began with, empty for random ones."""


@dataclass(frozen=True, kw_only=True)
class ModelMeta:
    """One published model: where it comes from and what it needs."""

    schema: int = MODEL_SCHEMA
    """Version of the directory's layout."""
    task: str
    """The game or environment it was trained for, as on the command line."""
    agent: str
    """The agent that trained it."""
    net: NetConfig
    """The network's size."""
    signature: Signature
    """What it reads, answers and keeps."""
    generation: int
    """Generation of self-play that its newest training data comes from."""
    num_steps: int
    """Learner steps behind it, over the whole run."""
    num_samples: int
    """Training rows behind it, over the whole run, repeats counted."""
    origin: ModelOrigin | None = None
    """What it was trained on; None in models of schema 1, and in those of no run."""
    made_at: float | None = None
    """When it was exported, UNIX seconds; None in models of schema 4 and before."""
    play: PlayConfig | None = None
    """How it plays; None in models of before, and in those that play no games."""
    sha256: dict[str, str]
    """Lower-case hexadecimal sha256 of each other file of the directory."""


@dataclass(frozen=True)
class ModelDir:
    """A model directory that was verified when this was made.

    Attributes:
        path: The directory.
        meta: Its ``meta.json``.
        boards: Of a network that knows boards of all sizes, what makes a model of
            another one, by its height and width; None of others.
    """

    path: Path
    meta: ModelMeta
    boards: Callable[[int, int], ModelDir] | None = None
