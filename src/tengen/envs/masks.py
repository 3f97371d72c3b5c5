"""Action masks: which choices an environment allows in the current state."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.config import check
from tengen.envs.copies import UnfitError, typed
from tengen.envs.env import ActionSpec
from tengen.errors import UsageError
from tengen.tensors import ACTION_MASK


def is_masked(space: Any) -> bool:
    """Returns whether an observation space is a ``Dict`` with an action mask."""
    from gymnasium import spaces

    return isinstance(space, spaces.Dict) and ACTION_MASK in space.spaces


class ActionMasks:
    """Reads the action masks of an environment.

    A mask has one flag for each choice of each component of an action, in the order of
    ``ActionSpec.num_choices``, as for ``MultiDiscrete`` in sb3-contrib's MaskablePPO.
    A tuple of one mask per component, as for ``MultiDiscrete.sample``, is accepted too.

    Args:
        actions: The environment's action space, of discrete choices.
        task: The environment's name, for error messages.
    """

    def __init__(self, actions: ActionSpec, task: str) -> None:
        self._task = task
        self._num_entries = sum(actions.num_choices)
        self._lengths = actions.num_choices
        self._starts = np.cumsum((0, *actions.num_choices[:-1]))

    def all_legal(self, num_envs: int) -> NDArray[np.bool_]:
        """Returns masks ``[N, A]`` for N copies, in which all choices are legal."""
        return np.ones((num_envs, self._num_entries), np.bool_)

    def write(
        self,
        source: Mapping[Any, Any],
        mask: NDArray[np.bool_],
        copy: int,
        *,
        is_terminal: bool,
    ) -> None:
        """Writes one copy's mask.

        No action follows a terminal state, and no target bootstraps from it. So a mask
        that is missing or allows nothing is accepted there, and all choices count as
        legal. A truncated episode bootstraps from its last state, which needs a mask.

        Args:
            source: The observation or the ``info`` that contains the mask.
            mask: ``[A]`` bool, written in place.
            copy: Index of the copy, for error messages.
            is_terminal: Whether the episode has terminated.

        Raises:
            EnvError: The mask is missing or invalid, or a component has no legal
                choice.
        """
        given = source.get(ACTION_MASK) if isinstance(source, Mapping) else None
        if given is None and is_terminal:
            mask[:] = True
            return
        flat = self._flat(given)
        if flat is None or flat.dtype.kind not in "biuf":
            raise self._refusal(typed(given), copy, "must be an array of 0 and 1")
        if flat.shape != mask.shape:
            rule = f"must have {self._num_entries} entries, one for each choice"
            raise self._refusal(str(flat.shape), copy, rule)
        if not ((flat == 0) | (flat == 1)).all():
            raise self._refusal(str(flat), copy, "must contain only 0 and 1")
        mask[:] = flat
        is_stuck = ~np.logical_or.reduceat(mask, self._starts)
        if not is_stuck.any():
            return
        if not is_terminal:
            rule = "must allow at least one choice of each component of the action"
            raise self._refusal(str(flat.astype(int)), copy, rule)
        mask |= np.repeat(is_stuck, self._lengths)

    def read(self, mask: Any) -> NDArray[np.bool_]:
        """Converts one mask to an array ``[1, A]``.

        Raises:
            UsageError: The mask is invalid.
        """
        rows = self.all_legal(1)
        try:
            self.write({ACTION_MASK: mask}, rows[0], 0, is_terminal=False)
        except UnfitError as error:
            raise UsageError(
                f"{error.what} {error.rule}; pass the environment's own mask"
            ) from None
        return rows

    def _flat(self, given: Any) -> NDArray[Any] | None:
        """Returns a mask as an array of one axis; None if it is no array."""
        with contextlib.suppress(ValueError):  # numpy raises it for ragged lists
            if isinstance(given, tuple) and len(given) == len(self._lengths):
                return np.concatenate([np.ravel(part) for part in given])
            return np.asarray(given)
        return None

    def _refusal(self, shown: str, copy: int, rule: str) -> UnfitError:
        return UnfitError(f"{ACTION_MASK} ({shown})", self._task, copy, rule)


def nth_legal(legal: NDArray[np.bool_], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns each row's legal choice number ``wanted``, counted from 0, ``[N]``.

    Args:
        legal: ``[N, C]`` bool, whether each choice is legal.
        wanted: ``[N]``, less than the row's number of legal choices.
    """
    rank = np.where(legal, np.cumsum(legal, axis=1) - 1, -1)
    choices: NDArray[np.int64] = (rank == wanted[:, None]).argmax(axis=1)
    return choices


def legal_actions(
    actions: NDArray[Any], mask: NDArray[np.bool_], num_choices: Sequence[int]
) -> NDArray[Any]:
    """Replaces illegal choices by legal ones; a legal choice stays.

    An illegal choice c of a component with L legal choices becomes legal choice number
    c modulo L. So random actions remain a function of a seed.

    Args:
        actions: Choices ``[N]`` or ``[N, K]``.
        mask: ``[N, A]`` bool, with at least one legal choice of each component.
        num_choices: Number of choices of each of the K components, with the sum A.
    """
    chosen = actions.reshape(len(actions), -1).copy()
    check(
        mask.shape == (len(chosen), sum(num_choices)),
        "mask",
        mask.shape,
        f"must have shape {(len(chosen), sum(num_choices))}; correct the caller",
    )
    start = 0
    for k, count in enumerate(num_choices):
        legal = mask[:, start : start + count]
        others = nth_legal(legal, chosen[:, k] % legal.sum(axis=1))
        is_legal = np.take_along_axis(legal, chosen[:, k : k + 1], axis=1)[:, 0]
        chosen[:, k] = np.where(is_legal, chosen[:, k], others)
        start += count
    return chosen.reshape(actions.shape)
