"""The metadata of a model directory: ``meta.json``."""

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
"""The schema of model directories that is written, and the newest that can be read."""

META_FILE = "meta.json"
WEIGHTS_FILE = "weights.safetensors"
"""The weights, which every model has. ``meta.json`` has the file's sha256."""
GRAPH_FILES = (ONNX_FILE, INT8_FILE)
"""Graphs that a model may have: in floats if its run uses graphs, and in int8.
``meta.json`` has the sha256 of each."""


@dataclass(frozen=True, kw_only=True)
class ModelOrigin:
    """The data that a model was trained on, as known at its export."""

    run: str
    """The run's folder, as given to export."""
    seed: int
    """Seed of the run."""
    checkpoint: int
    """Number of the checkpoint with its weights."""
    num_games: int | None = None
    """Games in the run at that time; None for environments."""
    num_rows: int | None = None
    """Training rows of these games; None for environments."""
    window_rows: int | None = None
    """Rows in the learner's window at that time; None for environments."""
    pass_generation: int | None = None
    """The newest generation in its training data: the number of the model that the
    games ended on, or below 0 for imported games. None without passes over
    generations."""
    pass_games: int | None = None
    """Games of this generation when it was learned from; None without passes."""
    learned_from_at: float | None = None
    """When its own training steps began, UNIX seconds; None up to schema 4."""
    learned_to_at: float | None = None
    """When its own training steps ended, UNIX seconds; None up to schema 4."""
    learn_from: str = ""
    """The run whose games it learned from; empty for its own."""
    initial_model: str = ""
    """The model whose weights the run began with; empty for random weights."""


@dataclass(frozen=True, kw_only=True)
class ModelMeta:
    """Metadata of a model: its origin, and its network."""

    schema: int = MODEL_SCHEMA
    """Schema of the directory."""
    task: str
    """The game or environment, as on the command line."""
    agent: str
    """The agent that trained it."""
    net: NetConfig
    """The network's size."""
    signature: Signature
    """The network's inputs, outputs and state."""
    generation: int
    """Generation of self-play of its newest training data."""
    num_steps: int
    """Learner steps so far, over the whole run."""
    num_samples: int
    """Training rows so far, over the whole run; repeated rows count again."""
    origin: ModelOrigin | None = None
    """Its training data; None in schema 1, and for models without a run."""
    made_at: float | None = None
    """When it was exported, UNIX seconds; None up to schema 4."""
    play: PlayConfig | None = None
    """How it plays; None in older models, and for environments."""
    sha256: dict[str, str]
    """Lower-case hexadecimal sha256 of each other file of the directory."""


@dataclass(frozen=True)
class ModelDir:
    """A model directory that was verified when this was made.

    Attributes:
        path: The directory.
        meta: Its ``meta.json``.
        boards: Makes the model for another board from height and width; None unless the
            network plays on boards of all sizes.
    """

    path: Path
    meta: ModelMeta
    boards: Callable[[int, int], ModelDir] | None = None
