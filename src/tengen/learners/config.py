"""The configs of learners; no torch here, so every role can read them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tengen.config import check, check_literals
from tengen.inference import check_device_words

__all__ = [
    "AdamWConfig",
    "LearnerConfig",
    "OptimizerConfig",
    "SgdConfig",
]


@dataclass(frozen=True, kw_only=True)
class _ScheduleConfig:
    """What both optimizers share: schedule, decay, clipping, averaging."""

    weight_decay: float = 1e-4
    """Decay of weights, at least 0; biases and norms are never decayed."""
    num_warmup_steps: int = 50
    """Steps over which the learning rate rises in a line from near 0, at least 0."""
    cooldown: float = 0.2
    """Last part of the budget, in [0, 1], over which the rate falls in a line."""
    max_grad_norm: float = 2.0
    """Gradients longer than this, all parameters together, are scaled to it."""
    average_decay: float = 0.99
    """Share of the averaged weights that one step keeps, in [0, 1). The averaged
    weights are what is published."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_literals(self)
        check(
            self.weight_decay >= 0,
            "weight_decay",
            self.weight_decay,
            "must be at least 0; use 0 for none",
        )
        check(
            self.num_warmup_steps >= 0,
            "num_warmup_steps",
            self.num_warmup_steps,
            "must be at least 0; use 0 for none",
        )
        check(
            0 <= self.cooldown <= 1,
            "cooldown",
            self.cooldown,
            "must be in [0, 1]; use 0 for none",
        )
        check(
            self.max_grad_norm > 0,
            "max_grad_norm",
            self.max_grad_norm,
            "must be positive; raise it",
        )
        check(
            0 <= self.average_decay < 1,
            "average_decay",
            self.average_decay,
            "must be in [0, 1); use 0 to publish the last weights",
        )


@dataclass(frozen=True, kw_only=True)
class SgdConfig(_ScheduleConfig):
    """Stochastic gradient descent with Nesterov momentum."""

    kind: Literal["sgd"] = "sgd"
    """Tells this config from the other optimizers'."""
    learning_rate: float = 0.2
    """Peak learning rate for a loss that is a mean over rows, positive."""
    momentum: float = 0.9
    """Nesterov momentum, in (0, 1)."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        super().__post_init__()
        _check_learning_rate(self.learning_rate)
        check(
            0 < self.momentum < 1,
            "momentum",
            self.momentum,
            "must be in (0, 1); use 0.9",
        )


@dataclass(frozen=True, kw_only=True)
class AdamWConfig(_ScheduleConfig):
    """Adam with decoupled weight decay."""

    kind: Literal["adamw"] = "adamw"
    """Tells this config from the other optimizers'."""
    learning_rate: float = 1e-3
    """Peak learning rate, positive."""
    beta1: float = 0.9
    """Decay of the first moment, in [0, 1)."""
    beta2: float = 0.999
    """Decay of the second moment, in [0, 1)."""
    epsilon: float = 1e-8
    """Added to the root of the second moment, positive."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        super().__post_init__()
        _check_learning_rate(self.learning_rate)
        for name in ("beta1", "beta2"):
            value = getattr(self, name)
            check(0 <= value < 1, name, value, "must be in [0, 1); lower it")
        check(self.epsilon > 0, "epsilon", self.epsilon, "must be positive; use 1e-8")


OptimizerConfig: TypeAlias = SgdConfig | AdamWConfig


@dataclass(frozen=True, kw_only=True)
class LearnerConfig:
    """How one step is made, whatever the loss."""

    batch_size: int = 128
    """Rows (games) or unrolls (environments) in a batch, at least 1."""
    epoch_samples: int = 100_000
    """Samples of one turn of learning at most, at least batch_size: after so many there
    is a checkpoint, for a new model, and what the limiter allows beyond them is for the
    next turn. A kill loses no more (KataGo's samples-per-epoch)."""
    num_shards: int = 2
    """Parts that a batch is always split into, in [1, batch_size]. The result of a
    step depends on this number and never on how many threads share the parts."""
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
        check_literals(self)
        check(
            self.batch_size >= 1,
            "batch_size",
            self.batch_size,
            "must be at least 1; raise it",
        )
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


def _check_learning_rate(value: float) -> None:
    check(value > 0, "learning_rate", value, "must be positive; raise it")
