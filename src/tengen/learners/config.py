"""Learner and optimizer configs; importing them does not import torch."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias

from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.inference import check_device_words

# Settings that must keep their defaults if ``rates`` defines the learning rate.
_WITHOUT_RATES = ("learning_rate", "num_warmup_steps", "cooldown")


@dataclass(frozen=True, kw_only=True)
class _ScheduleConfig:
    """Settings that both optimizers share: schedule, decay, clipping and averaging."""

    weight_decay: float = bounded(1e-4, 0, hint="use 0 for none")
    """Weight decay, at least 0; biases and the shifts of norms are never decayed. With
    ``sgd``, half the decay times the sum of squared weights is added to the loss."""
    decays_scales: bool = False
    """Whether the scales of norms are decayed too."""
    num_warmup_steps: int = bounded(50, 0, hint="use 0 for none")
    """Optimizer steps over which the learning rate increases linearly from near 0, at
    least 0."""
    cooldown: float = bounded(0.2, 0, 1, rule="must be in [0, 1]; use 0 for none")
    """Last fraction of the run's budget, in [0, 1], during which the learning rate
    decreases linearly to 0; at most half of the budget of one call."""
    rates: tuple[float, ...] = bounded(
        (), 0, above=True, rule="must be positive; leave it out for a constant rate"
    )
    """Piecewise constant learning rates, one more number than ``boundaries``. They
    replace ``learning_rate``, ``num_warmup_steps`` and ``cooldown``. Empty: use these
    three settings."""
    boundaries: tuple[int, ...] = bounded((), 0, hint="leave it out")
    """Last step index, from 0, of each rate in ``rates`` except the last rate;
    increasing, at least 0. With ``(10,)`` the first rate applies to eleven steps. Steps
    of ``learner.initial_model`` count."""
    max_grad_norm: float = bounded(2.0, 0, hint="use 0 for no limit")
    """Maximum norm of the gradient of all parameters; a larger gradient is scaled down
    to this norm. 0 for no limit."""
    average_decay: float = bounded(
        0.99, 0, 1, "use 0 to publish the last weights", below=True
    )
    """Decay per step of the exponential moving average of the weights, at least 0,
    below 1. Published models have the averaged weights. A larger decay reduces their
    noise and increases their lag."""

    def __post_init__(self) -> None:
        """Raises UsageError if a field is invalid or conflicts with another."""
        check_fields(self)
        count = len(self.boundaries) + 1 if self.rates or self.boundaries else 0
        check(
            len(self.rates) == count,
            "rates",
            list(self.rates),
            f"must be {count} numbers, one more than boundaries; give one per part",
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
                    "has no effect with rates; leave it out",
                )


@dataclass(frozen=True, kw_only=True)
class SgdConfig(_ScheduleConfig):
    """Stochastic gradient descent with momentum."""

    kind: Literal["sgd"] = "sgd"
    """The kind of optimizer."""
    learning_rate: float = bounded(
        0.2, 0, above=True, rule="must be positive; raise it"
    )
    """Peak learning rate, positive, for a loss that is a mean over rows."""
    momentum: float = bounded(0.9, 0, 1, "use 0.9", above=True, below=True)
    """Momentum, in (0, 1)."""
    nesterov: bool = True
    """Whether to use Nesterov momentum: a step uses the gradient plus ``momentum``
    times the velocity, which already includes the gradient."""


@dataclass(frozen=True, kw_only=True)
class AdamWConfig(_ScheduleConfig):
    """Adam with decoupled weight decay."""

    kind: Literal["adamw"] = "adamw"
    """The kind of optimizer."""
    learning_rate: float = bounded(
        1e-3, 0, above=True, rule="must be positive; raise it"
    )
    """Peak learning rate, positive."""
    beta1: float = bounded(0.9, 0, 1, "lower it", below=True)
    """Decay of the first moment, at least 0, below 1."""
    beta2: float = bounded(0.999, 0, 1, "lower it", below=True)
    """Decay of the second moment, at least 0, below 1."""
    epsilon: float = bounded(1e-8, 0, above=True, rule="must be positive; use 1e-8")
    """Positive number added to the square root of the second moment. A larger number
    reduces the updates of parameters with small gradients."""


OptimizerConfig: TypeAlias = SgdConfig | AdamWConfig


@dataclass(frozen=True, kw_only=True)
class LearnerConfig:
    """Settings of the learner, for any agent."""

    batch_size: int = bounded(128, 1, hint="raise it")
    """Number of samples in a batch, at least 1: rows of games, or items of steps."""
    epoch_samples: int = 100_000
    """Maximum number of samples in one turn of the learner, at least ``batch_size``
    (KataGo's samples-per-epoch). A turn ends with a checkpoint, which is exported as a
    model, so a kill loses at most one turn. The next turn uses further samples that the
    rate limiter allows. In environments whose roles work in turns, checkpoints are ten
    seconds apart instead."""
    num_shards: int = 2
    """Number of parts into which a batch is split, 1 to ``batch_size``. The result of a
    step depends on this number, but not on the number of threads. With more parts than
    threads, gradients are accumulated, which takes less memory for activations."""
    device: str = "auto"
    """Device of the learner: cpu, or a GPU such as cuda:0; auto uses the first of
    ``inference.devices``."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of the network's trunk; auto uses bfloat16 if the device supports it in
    hardware, except for a small network whose steps are recorded in float32."""
    optimizer: OptimizerConfig = field(default_factory=SgdConfig)
    """The optimizer and its settings."""
    initial_model: str = ""
    """Model with the initial weights of a new run: a RUN (its newest model at that
    time), RUN@17 or a model directory. The model's game must have the same shapes or be
    another board size of them, and its network must be ``net`` or able to grow into
    ``net``. Stored as a full path. Empty for random weights."""

    def __post_init__(self) -> None:
        """Raises UsageError if a field is invalid or conflicts with another."""
        check_fields(self)
        check(
            self.epoch_samples >= self.batch_size,
            "epoch_samples",
            self.epoch_samples,
            f"must be at least batch_size ({self.batch_size}); raise it",
        )
        check(
            1 <= self.num_shards <= self.batch_size,
            "num_shards",
            self.num_shards,
            f"must be 1 to batch_size ({self.batch_size}); lower it",
        )
        check_device_words("device", self.device)
        check(
            "," not in self.device,
            "device",
            self.device,
            "must be a single device; remove the others",
        )
