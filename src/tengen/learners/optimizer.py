"""The optimizer with its schedule, clipping and averaged weights.

Defaults were measured on a board task with a network of 4 blocks of 64 channels, at
equal CPU time: Nesterov momentum with a clipped gradient learned more than AdamW, each
at its best learning rate.
"""

from __future__ import annotations

import bisect
import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw
from torch.optim.sgd import sgd

from tengen.errors import RunError
from tengen.learners.config import OptimizerConfig, SgdConfig
from tengen.nets import Net

__all__ = ["Optimizer", "learning_rate_at"]

_MOST_OF_A_CALL = 0.5


def learning_rate_at(
    config: OptimizerConfig,
    num_steps: int,
    remaining: float | None,
    asked: float | None = None,
) -> float:
    """Returns the learning rate of the next step.

    The rate rises linearly over ``num_warmup_steps``, stays constant, and falls
    linearly to 0 over the last share ``cooldown`` of the run's budget. The fall takes
    at most half of the budget of this call, so that a run whose budget comes in many
    calls learns at the full rate too.

    Where the config has ``rates``, the rate is instead rate i while ``num_steps`` is
    above ``boundaries[i - 1]`` and at most ``boundaries[i]``. This is TensorFlow's
    ``piecewise_constant``, with steps numbered from 0.

    Args:
        config: Settings.
        num_steps: Steps already made.
        remaining: Share of the run's budget still to come, in [0, 1]; None where the
            run has no end, and then there is no cool-down.
        asked: Share of the run's budget that this call asks for, in (0, 1]; None for
            all.
    """
    if config.rates:
        return config.rates[bisect.bisect_left(config.boundaries, num_steps)]
    factor = 1.0
    if num_steps < config.num_warmup_steps:
        factor = (num_steps + 1) / config.num_warmup_steps
    cooldown = config.cooldown
    if asked is not None:
        cooldown = min(cooldown, _MOST_OF_A_CALL * asked)
    if remaining is not None and remaining < cooldown:
        factor *= max(remaining, 0.0) / cooldown
    return config.learning_rate * factor


class Optimizer:
    """Updates a network from gradients, and updates the average of its weights.

    Not thread-safe. All arithmetic is elementwise or in a fixed order, so equal
    gradients give equal bits on one intra-op thread.

    Attributes:
        average: A copy of the network in evaluation mode whose weights and norm
            statistics are the exponential average over steps. This copy is published.
            Early on it averages over fewer steps, so that the random first weights do
            not linger.
        num_steps: Steps that this optimizer has made; warm-up and average depend on
            it.
    """

    def __init__(
        self, config: OptimizerConfig, net: Net, others: Sequence[Tensor] = ()
    ) -> None:
        """Starts without momentum; the average starts at the network's weights.

        Args:
            config: Settings.
            net: The network.
            others: Parameters learned with the network but not averaged.
        """
        self._config = config
        self._parameters = [*net.parameters(), *others]
        self._groups = _groups(config, net, self._parameters)
        self.num_steps = 0
        self.average: Net = copy.deepcopy(net).eval().requires_grad_(False)
        # Listed once: listing them takes a tenth of a small network's step.
        current = net.state_dict()
        averaged = self.average.state_dict()
        self._averages = list(averaged.values())
        self._currents = [current[name] for name in averaged]

    def step(
        self,
        gradients: Sequence[Tensor],
        remaining: float | None = None,
        asked: float | None = None,
    ) -> dict[str, float]:
        """Makes one step. Blocks for its arithmetic.

        Args:
            gradients: One for each parameter, in the order of ``net.parameters()`` and
                then of the others, contiguous; they are scaled in place.
            remaining: As in ``learning_rate_at``.
            asked: As in ``learning_rate_at``.

        Returns:
            ``grad_norm`` before clipping and ``learning_rate``.

        Raises:
            RunError: The gradient is not finite; nothing was changed.
        """
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient
        limit = self._config.max_grad_norm or math.inf
        norm = nn.utils.clip_grad_norm_(self._parameters, limit).item()
        if not math.isfinite(norm):
            raise RunError(
                f"grad_norm ({norm}) at step {self.num_steps} must be finite; "
                "lower the learning rate and resume from the last checkpoint"
            )
        rate = learning_rate_at(self._config, self.num_steps, remaining, asked)
        for group in self._groups:
            group.step(self._config, rate)
        self.num_steps += 1
        return {"grad_norm": norm, "learning_rate": rate}

    @torch.no_grad()
    def update_average(self) -> None:
        """Moves the average towards the network's weights and norm statistics."""
        warm = (1.0 + self.num_steps) / (10.0 + self.num_steps)
        share = 1.0 - min(self._config.average_decay, warm)
        torch._foreach_lerp_(self._averages, self._currents, share)

    def state(self) -> dict[str, Tensor]:
        """Returns the optimizer's moments, named ``INDEX.NAME``, for a checkpoint."""
        return {
            f"{index}.{name}": tensor
            for index, (group, place) in enumerate(self._places())
            for name, tensors in group.moments.items()
            if (tensor := tensors[place]) is not None
        }

    def load_state(self, tensors: dict[str, Tensor], num_steps: int) -> None:
        """Restores what ``state`` returned.

        Args:
            tensors: As ``state`` returned them.
            num_steps: The value of ``num_steps`` at that time.
        """
        for group in self._groups:
            group.moments = {}
        places = list(self._places())
        for key, tensor in tensors.items():
            index, _, name = key.partition(".")
            group, place = places[int(index)]
            moments = group.moments.setdefault(name, [None] * len(group.parameters))
            parameter = group.parameters[place]
            moments[place] = tensor.to(parameter.device, torch.float32)
        self.num_steps = num_steps

    def _places(self) -> Iterator[tuple[_Group, int]]:
        """Yields each parameter's group and its place there, as checkpoints count."""
        for group in self._groups:
            for place in range(len(group.parameters)):
                yield group, place


@dataclass
class _Group:
    """Parameters that are treated alike.

    The functions of ``torch.optim`` update them. Its classes make the same steps, but
    import torch's compiler, which takes more than a second of each learner's start.
    """

    parameters: list[Tensor]
    weight_decay: float
    moments: dict[str, list[Any]] = field(default_factory=dict)
    """By name, one for each parameter; none before the first step."""

    @torch.no_grad()
    def step(self, config: OptimizerConfig, rate: float) -> None:
        gradients: list[Any] = [parameter.grad for parameter in self.parameters]
        if isinstance(config, SgdConfig):
            empty = [None] * len(gradients)
            sgd(
                self.parameters,
                gradients,
                self.moments.setdefault("momentum_buffer", empty),
                fused=True,
                weight_decay=self.weight_decay,
                momentum=config.momentum,
                lr=rate,
                dampening=0.0,
                nesterov=config.nesterov,
                maximize=False,
            )
            return
        if not self.moments:
            self.moments["step"] = [p.new_zeros(()) for p in self.parameters]
            for name in ("exp_avg", "exp_avg_sq"):
                self.moments[name] = [torch.zeros_like(p) for p in self.parameters]
        adamw(
            self.parameters,
            gradients,
            self.moments["exp_avg"],
            self.moments["exp_avg_sq"],
            [],
            self.moments["step"],
            fused=True,
            amsgrad=False,
            beta1=config.beta1,
            beta2=config.beta2,
            lr=rate,
            weight_decay=self.weight_decay,
            eps=config.epsilon,
            maximize=False,
        )


def _groups(
    config: OptimizerConfig, net: Net, parameters: Sequence[Tensor]
) -> list[_Group]:
    # Biases and norms have one axis; decaying them only counteracts the norm.
    decayed = {id(p) for p in parameters if p.dim() > 1}
    if config.decays_scales:
        decayed |= {id(p) for name, p in net.named_parameters() if _is_scale(name)}
    weights = [p for p in parameters if id(p) in decayed]
    others = [p for p in parameters if id(p) not in decayed]
    if config.weight_decay == 0:
        # One group, since all are treated alike: torch makes a call per group and step.
        weights, others = [*weights, *others], []
    groups = [_Group(weights, config.weight_decay)]
    if others:
        groups.append(_Group(others, 0.0))
    return groups


def _is_scale(name: str) -> bool:
    """Whether a parameter with one axis is a norm's scale, by its name."""
    return name.rpartition(".")[2] == "weight"
