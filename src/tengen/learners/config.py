"""The configs of learners; no torch here, so every role can read them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tengen.config import check, check_literals
from tengen.inference import check_device_words

__all__ = [
    "AdamWConfig",
    "AlphaZeroConfig",
    "LearnerConfig",
    "LossConfig",
    "OptimizerConfig",
    "SgdConfig",
    "VtraceConfig",
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


@dataclass(frozen=True, kw_only=True)
class AlphaZeroConfig:
    """The loss of search-guided self-play."""

    kind: Literal["alphazero"] = "alphazero"
    """Tells this config from the other losses'."""
    value_cost: float = 1.0
    """Weight of the value loss beside the policy loss, at least 0."""
    search_value_share: float = 0.3
    """Share of the search's value in the value target, in [0, 1]; the rest is the
    game's outcome. The outcome is unbiased, the search's value has less noise."""
    reply_cost: float = 0.15
    """Weight of the opponent's reply, at least 0; this and the next ones where the
    network has auxiliary heads (KataGo's 0.15)."""
    horizons_cost: float = 0.6
    """Weight of the values some plies on, all three together, at least 0 (KataGo's 0.72
    each)."""
    ownership_cost: float = 1.5
    """Weight of who owns each cell at the end, at least 0 (KataGo's 1.5)."""
    score_cost: float = 0.02
    """Weight of the distribution of the score and of its sums, at least 0 (KataGo's
    0.02 each)."""
    mean_score_cost: float = 0.0015
    """Weight of the squared error of the mean score in points, at least 0 (KataGo's
    0.0015)."""
    lead_cost: float = 0.006
    """Weight of the squared error of the lead in points, in the rows that have one, at
    least 0; where the network has a head for it, ``net.lead`` (KataGo's 0.006)."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_literals(self)
        for name in (
            "value_cost",
            "reply_cost",
            "horizons_cost",
            "ownership_cost",
            "score_cost",
            "mean_score_cost",
            "lead_cost",
        ):
            value = getattr(self, name)
            check(value >= 0, name, value, "must be at least 0; use 0 for none")
        check(
            0 <= self.search_value_share <= 1,
            "search_value_share",
            self.search_value_share,
            "must be in [0, 1]; use 0 for the outcome alone",
        )


@dataclass(frozen=True, kw_only=True)
class VtraceConfig:
    """The loss of the importance-weighted actor and learner (V-trace)."""

    kind: Literal["vtrace"] = "vtrace"
    """Tells this config from the other losses'."""
    discount: float = 0.99
    """Discount of one step, in [0, 1]."""
    trace_lambda: float = 1.0
    """Mixing of the traces, in [0, 1]; 0 gives one-step targets."""
    clip_rho: float = 1.0
    """Clip of the importance weights in the targets, positive."""
    clip_c: float = 1.0
    """Clip of the trace coefficients, in (0, clip_rho]."""
    clip_pg_rho: float = 1.0
    """Clip of the importance weights in the policy gradient, positive."""
    baseline_cost: float = 0.5
    """Weight of the baseline loss, at least 0."""
    entropy_cost: float = 0.01
    """Weight of the entropy bonus, at least 0."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_literals(self)
        for name in ("discount", "trace_lambda"):
            value = getattr(self, name)
            check(0 <= value <= 1, name, value, "must be in [0, 1]; change it")
        for name in ("clip_rho", "clip_c", "clip_pg_rho"):
            value = getattr(self, name)
            check(value > 0, name, value, "must be positive; use 1")
        # The paper's contraction needs it (section 4.1, below equation 1).
        check(
            self.clip_c <= self.clip_rho,
            "clip_c",
            self.clip_c,
            f"must be at most clip_rho ({self.clip_rho}); lower it",
        )
        for name in ("baseline_cost", "entropy_cost"):
            value = getattr(self, name)
            check(value >= 0, name, value, "must be at least 0; use 0 for none")


LossConfig: TypeAlias = AlphaZeroConfig | VtraceConfig


def _check_learning_rate(value: float) -> None:
    check(value > 0, "learning_rate", value, "must be positive; raise it")
