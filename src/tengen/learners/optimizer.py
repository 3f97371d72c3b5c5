"""The optimizer, with learning-rate schedule, gradient clipping and averaged weights.

SGD with Nesterov momentum and gradient clipping is the default, because it learned
faster than AdamW in equal CPU time, both with their best learning rates. The comparison
used a board game and a network of 4 blocks of 64 channels.
"""

from __future__ import annotations

import bisect
import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw
from torch.optim.sgd import sgd

from tengen.errors import RunError
from tengen.learners.config import OptimizerConfig, SgdConfig
from tengen.nets import Net

_MOST_OF_A_CALL = 0.5


def learning_rate_at(
    config: OptimizerConfig,
    num_steps: int,
    remaining: float | None,
    asked: float | None = None,
) -> float:
    """Returns the learning rate for the next optimizer step.

    The rate rises linearly over ``num_warmup_steps``, stays constant, and falls
    linearly to 0 over the last fraction ``cooldown`` of the run's budget. The cool-down
    takes at most half of the budget of this call, so that a run split into many calls
    also learns at the full rate.

    If the config has ``rates``, the rate is ``rates[i]`` while ``num_steps`` is above
    ``boundaries[i - 1]`` and at most ``boundaries[i]``. This is TensorFlow's
    ``piecewise_constant``, with steps numbered from 0.

    Args:
        config: The optimizer's settings.
        num_steps: Number of previous optimizer steps.
        remaining: Remaining fraction of the run's budget, in [0, 1]; None if the run
            has no end, which disables the cool-down.
        asked: Fraction of the run's budget that this call uses, in (0, 1]; None for
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
    """Updates a network with gradients, and maintains an average of its weights.

    Not thread-safe. On one intra-op thread of one type of processor, equal gradients
    give bit-identical weights.

    Attributes:
        config: The config given to the constructor.
        average: The network to publish: a copy in evaluation mode whose weights and
            norm statistics are exponential moving averages over steps. The first steps
            use a smaller decay, so that the average soon forgets the random initial
            weights.
        num_steps: Number of steps of this optimizer, for the warm-up and the average.
    """

    def __init__(
        self, config: OptimizerConfig, net: Net, others: Sequence[Tensor] = ()
    ) -> None:
        """Creates an optimizer with zero moments; the average is a copy of ``net``.

        Args:
            config: The optimizer's settings.
            net: The network to train.
            others: Parameters that are trained with the network but not averaged.
        """
        self.config = config
        trained = (p for p in net.parameters() if p.requires_grad)
        self._parameters = [*trained, *others]
        self._groups = _groups(config, net, self._parameters)
        self.num_steps = 0
        # A tensor, so that a recorded step reads the current rate.
        self._rate = torch.zeros((), dtype=torch.float64)
        self.average: Net = copy.deepcopy(net).eval().requires_grad_(False)
        # Listed once, because listing takes a tenth of the time of a small net's step.
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
        """Performs one optimizer step. Blocks until the step is computed.

        Args:
            gradients: Contiguous gradients of those of ``net.parameters()`` that
                require one, and then of ``others``; clipping scales them in place.
            remaining: As in ``learning_rate_at``.
            asked: As in ``learning_rate_at``.

        Returns:
            ``grad_norm``, the gradient's norm before clipping, and ``learning_rate``.

        Raises:
            RunError: The gradient is not finite; no parameter was changed.
        """
        norm = self.clip(gradients).item()
        rate = self.begin(norm, remaining, asked)
        self.apply()
        return {"grad_norm": norm, "learning_rate": rate}

    def clip(self, gradients: Sequence[Tensor]) -> Tensor:
        """Clips the gradients in place; returns their norm before, a scalar ``[]``.

        Args:
            gradients: See ``step``; ``apply`` uses them.
        """
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient
        limit = self.config.max_grad_norm or math.inf
        return nn.utils.clip_grad_norm_(self._parameters, limit)

    def begin(self, norm: float, remaining: float | None, asked: float | None) -> float:
        """Begins a step: checks the gradient's norm, and sets the learning rate.

        Args:
            norm: The result of ``clip``.
            remaining: As in ``learning_rate_at``.
            asked: As in ``learning_rate_at``.

        Returns:
            The learning rate.

        Raises:
            RunError: ``norm`` is not finite; no parameter was changed.
        """
        if not math.isfinite(norm):
            raise RunError(
                f"grad_norm ({norm}) at step {self.num_steps} must be finite; "
                "lower the learning rate and resume from the last checkpoint"
            )
        rate = learning_rate_at(self.config, self.num_steps, remaining, asked)
        self._rate.fill_(rate)
        for group in self._groups:
            group.begin(self.config)
        self.num_steps += 1
        return rate

    def apply(self) -> None:
        """Updates the parameters with the clipped gradients, after ``begin``."""
        for group in self._groups:
            group.step(self.config, self._rate)

    @torch.no_grad()
    def update_average(self) -> None:
        """Updates the average with the network's weights and norm statistics."""
        warm = (1.0 + self.num_steps) / (10.0 + self.num_steps)
        share = 1.0 - min(self.config.average_decay, warm)
        torch._foreach_lerp_(self._averages, self._currents, share)

    def state(self) -> dict[str, Tensor]:
        """Returns the moments for a checkpoint, named ``PARAMETER_INDEX.MOMENT``."""
        found: dict[str, Tensor] = {}
        first = 0
        for group in self._groups:
            for name, moments in group.moments.items():
                for index, tensor in enumerate(moments, first):
                    if tensor is not None:
                        found[f"{index}.{name}"] = tensor
            first += len(group.parameters)
        return found

    def load_state(self, tensors: dict[str, Tensor], num_steps: int) -> None:
        """Restores the moments and the number of steps from a checkpoint.

        Args:
            tensors: The result of ``state``.
            num_steps: The value of ``num_steps`` when ``state`` was called.

        Raises:
            RunError: A moment is missing or has a wrong shape; nothing was changed.
        """
        first = 0
        found = []
        for group in self._groups:
            found.append(group.loaded(self.config, tensors, first))
            first += len(group.parameters)
        for group, moments in zip(self._groups, found, strict=True):
            group.moments = moments
        self.num_steps = num_steps


@dataclass
class _Group:
    """Parameters with the same weight decay, and their moments.

    ``step`` calls functions of ``torch.optim`` instead of its classes, because creating
    an optimizer object imports torch's compiler, which takes as long as torch itself.
    """

    parameters: list[Tensor]
    """The parameters of the group, with their gradients in ``grad``."""
    weight_decay: float
    """Weight decay of all parameters in the group."""
    moments: dict[str, list[Any]] = field(default_factory=dict)
    """The moments by name, with one tensor per parameter; empty before step 1."""

    def begin(self, config: OptimizerConfig) -> None:
        """Creates the moments before the first step."""
        if self.moments:
            return
        if isinstance(config, SgdConfig):
            self.moments = {"momentum_buffer": [None for _ in self.parameters]}
            return
        self.moments = {
            "step": [torch.zeros((), device=p.device) for p in self.parameters],
            "exp_avg": [torch.zeros_like(p) for p in self.parameters],
            "exp_avg_sq": [torch.zeros_like(p) for p in self.parameters],
        }

    @torch.no_grad()
    def step(self, config: OptimizerConfig, rate: Tensor) -> None:
        """Performs one optimizer step; ``rate`` is the learning rate, ``[]``."""
        gradients: list[Any] = [p.grad for p in self.parameters]
        if isinstance(config, SgdConfig):
            sgd(
                self.parameters,
                gradients,
                self.moments["momentum_buffer"],
                fused=True,
                lr=rate.item(),
                momentum=config.momentum,
                nesterov=config.nesterov,
                weight_decay=self.weight_decay,
                dampening=0.0,
                maximize=False,
            )
            return
        adamw(
            self.parameters,
            gradients,
            self.moments["exp_avg"],
            self.moments["exp_avg_sq"],
            [],
            self.moments["step"],
            fused=True,
            lr=rate if gradients[0].device.type == "cpu" else rate.item(),
            beta1=config.beta1,
            beta2=config.beta2,
            eps=config.epsilon,
            weight_decay=self.weight_decay,
            amsgrad=False,
            maximize=False,
        )

    def loaded(
        self, config: OptimizerConfig, tensors: dict[str, Tensor], first: int
    ) -> dict[str, list[Any]]:
        """Returns copies of the group's moments in ``tensors``.

        Args:
            config: The optimizer, whose moments must be there.
            tensors: The moments of all groups, named ``PARAMETER_INDEX.MOMENT``.
            first: Index of the group's first parameter.

        Raises:
            RunError: A moment is missing or has a wrong shape.
        """
        found: dict[str, list[Any]] = {}
        # Before the first step there are no moments.
        names = _moment_names(config) if tensors else ()
        for index, parameter in enumerate(self.parameters, first):
            for name in names:
                moment = tensors.get(f"{index}.{name}")
                shape = torch.Size() if name == "step" else parameter.shape
                if moment is None or moment.shape != shape:
                    given = "absent" if moment is None else list(moment.shape)
                    raise RunError(
                        f"optimizer.{index}.{name} ({given}) must have shape "
                        f"{list(shape)}; resume with the network and the "
                        "learner.optimizer.kind that the run was started with"
                    )
                copied = moment.to(parameter.device, copy=True)
                found.setdefault(name, []).append(copied)
        return found


def _moment_names(config: OptimizerConfig) -> tuple[str, ...]:
    is_sgd = isinstance(config, SgdConfig)
    return ("momentum_buffer",) if is_sgd else ("step", "exp_avg", "exp_avg_sq")


def _groups(
    config: OptimizerConfig, net: Net, parameters: Sequence[Tensor]
) -> list[_Group]:
    # Parameters with one axis (biases, and shifts and scales of norms) are not decayed,
    # because weight decay would counteract the norms.
    decayed = {id(p) for p in parameters if p.dim() > 1}
    if config.decays_scales:
        decayed |= {id(p) for name, p in net.named_parameters() if _is_scale(name)}
    weights = [p for p in parameters if id(p) in decayed]
    others = [p for p in parameters if id(p) not in decayed]
    if config.weight_decay == 0:
        # Without weight decay, one group for all parameters saves an optimizer call.
        weights, others = [*weights, *others], []
    groups = [_Group(weights, config.weight_decay), _Group(others, 0.0)]
    return [group for group in groups if group.parameters]


def _is_scale(name: str) -> bool:
    """Returns whether the one-axis parameter ``name`` is the scale of a norm."""
    return name.rpartition(".")[2] == "weight"
