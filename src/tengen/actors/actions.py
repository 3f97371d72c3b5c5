"""Samples actions, clips them for environments, and encodes them for networks."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.envs import ActionSpec, Arrays, Scale, nth_legal
from tengen.tensors import ILLEGAL


@dataclass(frozen=True)
class Slots:
    """The range of an actor's rows among all rows of the run's environment.

    A row is a copy of the environment, or one agent of a copy.
    """

    first: int
    """Index of the actor's first row, counted over the rows of all actors."""
    count: int
    """Number N of rows that the actor steps."""
    total: int
    """Total number of rows that all actors of the run step."""


class Policy(Protocol):
    """Maps a network's outputs to actions. The methods are pure and thread-safe."""

    def num_uniforms(self, actions: ActionSpec) -> int:
        """Returns the number U of uniform random numbers that ``act`` needs per row."""

    def act(
        self,
        outputs: Arrays,
        actions: ActionSpec,
        uniforms: NDArray[np.float64],
        slots: Slots,
    ) -> Arrays:
        """Samples the actions to take, and computes the columns to store with them.

        Args:
            outputs: The network's outputs, ``[N, ...]``.
            actions: The environment's action space.
            uniforms: ``[N, U]`` float64, random numbers in [0, 1).
            slots: The range of the rows among those of the run.

        Returns:
            ``action`` ``[N, ...]``, in the space ``actions``, and the columns
            ``[N, ...]`` that the agent defines.
        """

    def act_greedily(self, outputs: Arrays, actions: ActionSpec) -> Arrays:
        """Returns only ``action``, ``[N, ...]``, chosen greedily, without sampling."""


def clip_actions(spec: ActionSpec, actions: NDArray[Any]) -> NDArray[Any]:
    """Clips continuous actions to their bounds; leaves discrete actions unchanged.

    A Gaussian policy samples unbounded actions. The store receives the unclipped
    samples, in the environment's units; the environment receives clipped actions.

    Args:
        spec: The environment's action space.
        actions: Actions ``[N, ...]`` of that space, before clipping.
    """
    if spec.is_discrete:
        return actions
    low, high = spec.bounds
    # np.clip takes three times as long as these two.
    clipped: NDArray[Any] = np.minimum(np.maximum(actions, low), high)
    return clipped


def is_legal(outputs: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Returns whether each of a network's outputs ``[N, A]`` is of a legal choice."""
    legal: NDArray[np.bool_] = outputs > ILLEGAL / 2
    return legal


def random_choices(
    uniforms: NDArray[np.float64],
    actions: ActionSpec,
    mask: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """Returns uniformly distributed legal choices ``[N, K]``.

    Args:
        uniforms: ``[N, K]`` float64, random numbers in [0, 1).
        actions: An action space of K discrete choices.
        mask: ``[N, A]`` bool, whether each choice is legal; None if all are.
    """
    if mask is None or mask.all():
        return (uniforms * actions.num_choices).astype(np.int64)
    starts = np.cumsum((0, *actions.num_choices))
    choices = []
    for k, (start, end) in enumerate(itertools.pairwise(starts)):
        legal = mask[:, start:end]
        wanted = (uniforms[:, k] * legal.sum(axis=1)).astype(np.int64)
        choices.append(nth_legal(legal, wanted))
    return np.stack(choices, axis=1)


def encoded_length(spec: ActionSpec) -> int:
    """Returns the length of the float32 vector to which an action is encoded."""
    return sum(spec.num_choices) if spec.is_discrete else len(spec.low)


def encode_actions(
    spec: ActionSpec, actions: NDArray[Any], *, is_scaled: bool = False
) -> NDArray[np.float32]:
    """Encodes discrete actions as one-hot vectors; clips continuous actions.

    Args:
        spec: The environment's action space.
        actions: Actions ``[N, ...]`` of that space.
        is_scaled: Whether to scale bounded continuous actions to [-1, 1].
    """
    num_rows = len(actions)
    if not spec.is_discrete:
        numbers = clip_actions(spec, actions).reshape(num_rows, -1)
        if is_scaled:
            numbers = spec.scale.to_unit(numbers)
        return numbers.astype(np.float32)
    starts = np.cumsum((0, *spec.num_choices[:-1]))
    encoded = np.zeros((num_rows, encoded_length(spec)), np.float32)
    np.put_along_axis(encoded, actions.reshape(num_rows, -1) + starts, 1.0, axis=1)
    return encoded


# Bounds of the log standard deviation, equal to those in tengen.losses.distributions.
_MIN_LOG_STD, _MAX_LOG_STD = -20.0, 2.0


class ActionDraws(Protocol):
    """Samples actions from the distribution that a network's outputs parametrise.

    The distributions must match those in ``tengen.losses.distributions``. Samples are
    computed in float64.

    Legend: N rows, L outputs, K components of an action.
    """

    @property
    def num_uniforms(self) -> int:
        """Number U of uniform random numbers from which one row's action is sampled."""

    def draw(
        self, outputs: NDArray[np.float32], uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """Samples actions; returns them and their log-probabilities or log-densities.

        Args:
            outputs: ``[N, L]`` float32, finite outputs of the network.
            uniforms: ``[N, U]`` float64, random numbers in [0, 1).

        Returns:
            Actions of shape ``[N]`` or ``[N, K]``, int64 if discrete, float32 if
            continuous; and finite log-probabilities in nats, ``[N]`` float32.
        """

    def greedy(self, outputs: NDArray[np.float32]) -> NDArray[Any]:
        """Returns the most likely actions; ties go to the lowest discrete action.

        Args:
            outputs: ``[N, L]`` float32, finite outputs of the network.

        Returns:
            Actions of shape ``[N]`` or ``[N, K]``, int64 if discrete, else float32.
        """


class CategoricalDraws:
    """Samples actions with one or several independent discrete components."""

    def __init__(self, num_choices: Sequence[int], shape: tuple[int, ...]) -> None:
        """Creates the sampler.

        Args:
            num_choices: Number of choices of each action component, at least 1.
            shape: Shape of one action: ``()`` for one component, or ``(K,)``.
        """
        ends = [sum(num_choices[: i + 1]) for i in range(len(num_choices))]
        # Each component's logits are a slice of the network's outputs.
        self._slices = [
            slice(end - length, end)
            for end, length in zip(ends, num_choices, strict=True)
        ]
        self._is_scalar = shape == ()
        self._draws = _core.ChoiceDraws(num_choices)

    @property
    def num_uniforms(self) -> int:
        """One uniform random number per action component."""
        return len(self._slices)

    def draw(
        self, outputs: NDArray[np.float32], uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """See ``ActionDraws``. Never samples a choice whose probability rounds to 0."""
        actions, log_prob = self._draws.draw(outputs, uniforms)
        return self._shaped(actions), log_prob

    def greedy(self, outputs: NDArray[np.float32]) -> NDArray[np.int64]:
        """See ``ActionDraws``."""
        best = [outputs[:, part].argmax(axis=1) for part in self._slices]
        return self._shaped(np.stack(best, axis=1).astype(np.int64))

    def _shaped(self, actions: NDArray[np.int64]) -> NDArray[np.int64]:
        return actions[:, 0] if self._is_scalar else actions


class GaussianDraws:
    """Samples independent Gaussian numbers, which may be scaled and squashed.

    Without bounds, actions are neither squashed nor clipped, and densities refer to
    the samples before scaling. With bounds, samples are squashed with tanh before they
    are scaled, and densities refer to actions scaled to [-1, 1]. Of a row's 2 K uniform
    numbers, the Box-Muller transform uses K for radii and then K for angles.

    Source: Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications"
    (arXiv:1812.05905), appendix C, for squashing.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        scale: Scale | None = None,
        bounds: tuple[Sequence[float], Sequence[float]] | None = None,
    ) -> None:
        """Creates the sampler.

        Args:
            shape: Shape of one action: ``()`` for one number, or ``(K,)``.
            scale: The scale that maps samples to actions; None for unscaled actions.
            bounds: The lowest and the highest actions; None for actions that are not
                squashed.
        """
        self._is_scalar = shape == ()
        self._num_numbers = 1 if self._is_scalar else shape[0]
        self._middle, self._half = map(np.array, scale or Scale((0.0,), (1.0,)))
        self._bounds = None if bounds is None else tuple(map(np.array, bounds))

    @property
    def num_uniforms(self) -> int:
        """Two uniform numbers for each component."""
        return 2 * self._num_numbers

    def draw(
        self, outputs: NDArray[np.float32], uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """See ``ActionDraws``."""
        count = self._num_numbers
        both = outputs.astype(np.float64)
        mean = both[:, :count]
        log_std = np.minimum(np.maximum(both[:, count:], _MIN_LOG_STD), _MAX_LOG_STD)
        # Uniform numbers are below 1, so log1p is finite.
        radii = np.sqrt(-2.0 * np.log1p(-uniforms[:, :count]))
        normals = radii * np.cos(2.0 * math.pi * uniforms[:, count:])
        numbers = mean + np.exp(log_std) * normals
        # Compute the density of the stored action, which is rounded to float32.
        if self._bounds is None:
            actions = self._actions(numbers)
            numbers = (actions - self._middle) / self._half
        else:
            numbers = numbers.astype(np.float32).astype(np.float64)
            actions = self._actions(numbers)
        distance = (numbers - mean) * np.exp(-log_std)
        density = -0.5 * distance**2 - log_std - 0.5 * math.log(2 * math.pi)
        if self._bounds is not None:
            # The logarithm of the slope of tanh.
            log_sum = np.logaddexp(0.0, -2.0 * numbers)
            density -= 2.0 * (math.log(2.0) - numbers - log_sum)
        log_prob = density.sum(axis=1)
        return self._shaped(actions), log_prob.astype(np.float32)

    def greedy(self, outputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """See ``ActionDraws``; returns the means, squashed if there are bounds."""
        mean = outputs[:, : self._num_numbers].astype(np.float64)
        return self._shaped(self._actions(mean))

    def _actions(self, numbers: NDArray[np.float64]) -> NDArray[np.float32]:
        if self._bounds is None:
            actions = self._middle + self._half * numbers
        else:
            low, high = self._bounds
            actions = self._middle + self._half * np.tanh(numbers)
            actions = np.minimum(np.maximum(actions, low), high)
        scaled: NDArray[np.float32] = actions.astype(np.float32)
        return scaled

    def _shaped(self, actions: NDArray[np.float32]) -> NDArray[np.float32]:
        return actions[:, 0] if self._is_scalar else actions


@functools.cache
def make_squashed_draws(actions: ActionSpec) -> ActionDraws:
    """Returns a squashed Gaussian sampler for bounded continuous actions.

    Args:
        actions: A space of continuous actions, all bounded.
    """
    return GaussianDraws(actions.shape, actions.scale, (actions.low, actions.high))


@functools.cache
def make_action_draws(
    num_choices: tuple[int, ...], shape: tuple[int, ...], scale: Scale | None = None
) -> ActionDraws:
    """Returns a categorical or Gaussian sampler for an environment's actions.

    Args:
        num_choices: Number of choices of each component; empty for continuous actions.
        shape: Shape of one action: ``()`` or ``(K,)``.
        scale: See ``GaussianDraws``; ignored for discrete actions.
    """
    if num_choices:
        return CategoricalDraws(num_choices, shape)
    return GaussianDraws(shape, scale)
