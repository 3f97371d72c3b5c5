"""The configs of learners; no torch here, so every role can read them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias

from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.inference import check_device_words

__all__ = [
    "AdamWConfig",
    "LearnerConfig",
    "OptimizerConfig",
    "SgdConfig",
]

# Not read where the rates of each part of training are given.
_WITHOUT_RATES = ("learning_rate", "num_warmup_steps", "cooldown")


@dataclass(frozen=True, kw_only=True)
class _ScheduleConfig:
    """What both optimizers share: schedule, decay, clipping, averaging."""

    weight_decay: float = bounded(1e-4, 0, hint="use 0 for none")
    """Decay of weights, at least 0; biases and the shifts of norms are never decayed.
    With ``sgd`` it is the gradient of a loss of half as much a squared weight."""
    decays_scales: bool = False
    """Whether the scales of norms are decayed too."""
    num_warmup_steps: int = bounded(50, 0, hint="use 0 for none")
    """Steps over which the learning rate rises in a line from near 0, at least 0."""
    cooldown: float = bounded(0.2, 0, 1, rule="must be in [0, 1]; use 0 for none")
    """Last part of the run's budget, in [0, 1], over which the rate falls in a line;
    at most half of what one call asks for."""
    rates: tuple[float, ...] = bounded(
        (), 0, above=True, rule="must be positive; leave it out for one rate"
    )
    """Learning rates of the parts of training, each level, in place of learning_rate,
    warm-up and cool-down; one more than boundaries. Empty for those."""
    boundaries: tuple[int, ...] = bounded((), 0, hint="leave it out")
    """Steps already made up to which each of the rates but the last holds: ``(10,)``
    has the first rate for eleven steps. In rising order, at least 0; those behind
    ``learner.initial_model`` count."""
    max_grad_norm: float = bounded(2.0, 0, hint="use 0 for no limit")
    """Gradients longer than this, all parameters together, are scaled to it; 0 for no
    limit."""
    average_decay: float = bounded(
        0.99, 0, 1, "use 0 to publish the last weights", below=True
    )
    """Share of the averaged weights that one step keeps, in [0, 1). The averaged
    weights are what is published."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)
        count = len(self.boundaries) + 1 if self.rates or self.boundaries else 0
        check(
            len(self.rates) == count,
            "rates",
            list(self.rates),
            f"must be {count} numbers, one more than boundaries; give one a part",
        )
        is_rising = all(a < b for a, b in itertools.pairwise(self.boundaries))
        check(is_rising, "boundaries", list(self.boundaries), "must rise; sort them")
        for other in fields(self):
            if self.rates and other.name in _WITHOUT_RATES:
                value = getattr(self, other.name)
                check(
                    value == other.default,
                    other.name,
                    value,
                    "is not read where there are rates; leave it out",
                )


@dataclass(frozen=True, kw_only=True)
class SgdConfig(_ScheduleConfig):
    """Stochastic gradient descent with momentum."""

    kind: Literal["sgd"] = "sgd"
    """Tells this config from the other optimizers'."""
    learning_rate: float = bounded(
        0.2, 0, above=True, rule="must be positive; raise it"
    )
    """Peak learning rate for a loss that is a mean over rows, positive."""
    momentum: float = bounded(0.9, 0, 1, "use 0.9", above=True, below=True)
    """Momentum, in (0, 1)."""
    nesterov: bool = True
    """Whether a step goes by the gradient beside the momentum that has it already, as
    Nesterov's does, or by the momentum alone."""


@dataclass(frozen=True, kw_only=True)
class AdamWConfig(_ScheduleConfig):
    """Adam with decoupled weight decay."""

    kind: Literal["adamw"] = "adamw"
    """Tells this config from the other optimizers'."""
    learning_rate: float = bounded(
        1e-3, 0, above=True, rule="must be positive; raise it"
    )
    """Peak learning rate, positive."""
    beta1: float = bounded(0.9, 0, 1, "lower it", below=True)
    """Decay of the first moment, in [0, 1)."""
    beta2: float = bounded(0.999, 0, 1, "lower it", below=True)
    """Decay of the second moment, in [0, 1)."""
    epsilon: float = bounded(1e-8, 0, above=True, rule="must be positive; use 1e-8")
    """Added to the root of the second moment, positive."""


OptimizerConfig: TypeAlias = SgdConfig | AdamWConfig


@dataclass(frozen=True, kw_only=True)
class LearnerConfig:
    """How one step is made, whatever the loss."""

    batch_size: int = bounded(128, 1, hint="raise it")
    """Rows (games) or unrolls (environments) in a batch, at least 1."""
    epoch_samples: int = 100_000
    """Samples of one turn of learning at most, at least batch_size: after so many there
    is a checkpoint, for a new model, and what the limiter allows beyond them is for the
    next turn. A kill loses no more (KataGo's samples-per-epoch); in environments whose
    roles take turns, ten seconds."""
    num_shards: int = 2
    """Parts that a batch is always split into, in [1, batch_size]. The result of a
    step depends on this number and never on how many threads share the parts. Where
    they are more than the threads, gradients of one part after the other are added up:
    activations are then only of the parts that are in work."""
    device: str = "auto"
    """Where steps are computed: cpu, or a GPU such as cuda:0; auto takes the first of
    inference.devices."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Arithmetic of the trunk; auto takes bfloat16 where the device has it."""
    optimizer: OptimizerConfig = field(default_factory=SgdConfig)
    """Which optimizer, and its settings."""
    initial_model: str = ""
    """Model whose weights a new run begins with: a RUN (its newest model when this is
    set), RUN@17 or a model directory, of a game with the same shapes, and a network
    that ``net`` is or can grow from. Kept as a full path. Empty for random weights."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)
        check(
            self.epoch_samples >= self.batch_size,
            "epoch_samples",
            self.epoch_samples,
            f"must be at least {self.batch_size}, the batch_size; raise it",
        )
        check(
            1 <= self.num_shards <= self.batch_size,
            "num_shards",
            self.num_shards,
            f"must be in [1, {self.batch_size}], the batch_size; lower it",
        )
        check_device_words("device", self.device)
        check(
            "," not in self.device,
            "device",
            self.device,
            "must be one device; a learner uses one",
        )
