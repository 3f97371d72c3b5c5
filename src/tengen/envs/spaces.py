"""Converts Gymnasium observations to named arrays, and actions to Gymnasium actions.

An observation space becomes named tensors. ``Box`` becomes an array, ``Discrete`` a
one-hot vector, ``MultiDiscrete`` float32 numbers, and ``MultiBinary`` bools. Each
entry of a ``Dict`` or ``Tuple`` is named ``observation/KEY``, or
``observation/KEY/KEY`` if nested. Actions become discrete, counted from 0
(``Discrete``, ``MultiDiscrete``, ``MultiBinary``), or continuous (``Box``), and are
flattened to one axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.envs.copies import ActionRange, UnfitError, not_float32, one_line
from tengen.envs.env import MOST_BOUND, ActionSpec, Arrays
from tengen.envs.masks import is_masked, legal_actions
from tengen.errors import UsageError
from tengen.tensors import ACTION_MASK, TensorSpec

# Maps a Gymnasium space's dtype to the smallest torch dtype that holds its values.
_DTYPES = {
    "bool": "bool",
    "uint8": "uint8",
    "int8": "int8",
    "int16": "int16",
    "uint16": "int32",
    "int32": "int32",
    "uint32": "int64",
    "int64": "int64",
}


# Spaces above these limits are rejected, because their arrays could exhaust memory.
_MAX_VALUES = 65_536  # elements of a one-hot vector
_MAX_CHOICES = 1_048_576  # logits of an action: one per choice of each component
_MAX_NUMBERS = 67_108_864  # elements of an observation array
_LARGE = 30.0


@dataclass(frozen=True)
class _Entry:
    """Describes how one array is read from a nested observation."""

    name: str
    """The array's name in the spec."""
    keys: tuple[Any, ...]
    """The keys that lead to the array in a nested observation."""
    spec: TensorSpec
    """The dtype and shape of the array for one copy."""
    values: NDArray[np.int64] | None = None
    """The ``[n]`` values of a ``Discrete`` space; None for other spaces."""
    most: float = 0.0
    """The largest absolute value of the space's bounds that is at most ``MOST_BOUND``;
    0 if there is none."""


class Observations:
    """Converts Gymnasium observations to named arrays.

    Args:
        space: The observation space of one copy.
        task: The environment's name, for error messages.
        actions: The action space, if known. If it is discrete, the entry
            ``ACTION_MASK`` of a ``Dict`` is a mask of legal actions, not an
            observation.

    Attributes:
        specs: The tensor specs of one observation, by name.
        has_mask: Whether observations contain an action mask.
        pixel_scales: See ``EnvSpec``.
        has_large_vectors: See ``EnvSpec``.

    Raises:
        UsageError: A part of the space is of an unsupported kind, or two parts have the
            same name.
    """

    def __init__(
        self, space: Any, task: str, actions: ActionSpec | None = None
    ) -> None:
        self._task = task
        has_choices = actions is not None and actions.is_discrete
        self.has_mask = has_choices and is_masked(space)
        entries = _entries(space, task, "observation", ())
        self._entries = [
            entry
            for entry in entries
            if not self.has_mask or entry.keys[0] != ACTION_MASK
        ]
        self.specs = {entry.name: entry.spec for entry in self._entries}
        self.pixel_scales = {
            entry.name: entry.most for entry in self._entries if _is_scaled(entry)
        }
        self.has_large_vectors = any(map(_is_large, self._entries))
        if not self._entries or len(self.specs) != len(self._entries):
            raise UsageError(
                f"observation space ({one_line(space)}) of {task} must have entries "
                "with distinct names; rename some"
            )

    def zeros(self, num_envs: int) -> Arrays:
        """Returns zero-filled observation arrays for ``num_envs`` copies, by name."""
        return {name: spec.zeros(num_envs) for name, spec in self.specs.items()}

    def write(self, value: Any, arrays: Arrays, copy: int | None = None) -> None:
        """Writes the observation of one copy or of all copies into ``arrays``.

        Args:
            value: The Gymnasium observation of one copy, or of a batch.
            arrays: Arrays of shape ``[N, ...]`` by name, modified in place.
            copy: Index of the copy; None for a batch.

        Raises:
            EnvError: The observation does not fit its space.
        """
        for entry in self._entries:
            part = value
            for key in entry.keys:
                try:
                    part = part[key]
                except (LookupError, TypeError):
                    rule = f"must be in the observation, a {type(value).__name__}"
                    raise self._refusal(entry.name, "missing", copy, rule) from None
            rows = arrays[entry.name]
            self._write_entry(
                entry, part, rows if copy is None else rows[copy, ...], copy
            )

    def read(self, value: Any) -> Arrays:
        """Converts one Gymnasium observation to arrays of shape ``[1, ...]``.

        Args:
            value: The observation, as an environment with this space returns it.

        Raises:
            UsageError: The observation does not fit its space.
        """
        arrays = self.zeros(1)
        try:
            self.write(value, arrays, 0)
            self.check_finite(arrays)
        except UnfitError as error:
            raise UsageError(
                f"{error.what} of {self._task} {error.rule}; pass the result of the "
                "environment's reset or step"
            ) from None
        return arrays

    def check_finite(self, arrays: Arrays) -> None:
        """Checks ``arrays`` for infinity and NaN, which would break learning later.

        Raises:
            EnvError: A number is infinite or NaN.
        """
        for name, array in arrays.items():
            if array.dtype == np.float32 and not np.isfinite(array).all():
                copy = int(np.argwhere(~np.isfinite(array))[0, 0])
                row = array[copy]
                value = float(row[~np.isfinite(row)].flat[0])
                raise self._refusal(name, value, copy, "must be finite")

    def _write_entry(
        self, entry: _Entry, part: Any, rows: NDArray[Any], copy: int | None
    ) -> None:
        try:
            array = np.asarray(part)
        except ValueError:  # of a ragged list; contextlib.suppress takes a microsecond
            array = np.array(None)
        if array.dtype.kind not in "biuf":
            raise self._refusal(entry.name, part, copy, "must be an array of numbers")
        if entry.values is not None:
            one_hot: NDArray[Any] = array[..., None] == entry.values
            if not one_hot.any(axis=-1).all():
                rule = f"must be {entry.values[0]} to {entry.values[-1]}"
                raise self._refusal(entry.name, array, copy, rule)
            array = one_hot
        if array.shape != rows.shape:
            rule = f"must have the shape {rows.shape} of its space"
            raise self._refusal(entry.name, array.shape, copy, rule)
        if array.dtype == rows.dtype:
            rows[...] = array
            return
        if rows.dtype == np.float32:
            self._write_floats(entry, array, rows, copy)
            return
        with np.errstate(invalid="ignore"):
            rows[...] = array
        # If the values differ, the cast dropped a fraction or overflowed.
        if not (rows == array).all():
            rule = f"must have values that fit its space's dtype ({rows.dtype})"
            raise self._refusal(entry.name, array.dtype, copy, rule)

    def _write_floats(
        self, entry: _Entry, array: NDArray[Any], rows: NDArray[Any], copy: int | None
    ) -> None:
        try:
            with np.errstate(over="raise"):
                rows[...] = array
        except FloatingPointError:
            value = array.flat[np.abs(array).argmax()].item()
            raise self._refusal(entry.name, value, copy, not_float32(value)) from None

    def _refusal(
        self, name: str, value: object, copy: int | None, rule: str
    ) -> UnfitError:
        return UnfitError(f"{name} ({one_line(value)})", self._task, copy, rule)


class Actions:
    """Converts tengen actions to Gymnasium actions.

    Args:
        space: The action space of one copy.
        task: The environment's name, for error messages.

    Attributes:
        spec: The action space as an ``ActionSpec``.

    Raises:
        UsageError: The space is of an unsupported kind.
    """

    def __init__(self, space: Any, task: str) -> None:
        from gymnasium import spaces

        self._shape: tuple[int, ...] = tuple(
            int(length) for length in space.shape or ()
        )
        self._dtype = space.dtype
        self._first: Any = 0
        name = "action space"
        if isinstance(space, spaces.Discrete):
            _check_size(space, task, name, int(space.n), _MAX_CHOICES, "choices")
            self._first = int(space.start)
            self.spec = ActionSpec(num_choices=(int(space.n),))
        elif isinstance(space, spaces.MultiDiscrete) and space.nvec.size:
            self._first = space.start.ravel()
            choices = tuple(int(n) for n in space.nvec.ravel())
            _check_size(space, task, name, sum(choices), _MAX_CHOICES, "choices")
            self.spec = ActionSpec(shape=(len(choices),), num_choices=choices)
        elif isinstance(space, spaces.MultiBinary):
            length = math.prod(self._shape)
            _check_size(space, task, name, 2 * length, _MAX_CHOICES, "choices")
            self.spec = ActionSpec(shape=(length,), num_choices=(2,) * length)
        elif (
            isinstance(space, spaces.Box) and space.dtype.kind == "f" and space.low.size
        ):
            low, high = (
                tuple(float(bound) for bound in bounds.ravel())
                for bounds in (space.low, space.high)
            )
            self.spec = ActionSpec(shape=(len(low),), low=low, high=high)
        else:
            raise UsageError(
                f"action space ({one_line(space)}) of {task} must be Discrete, "
                f"MultiDiscrete, MultiBinary or a Box of floats; "
                f"wrap the environment, or choose another"
            )
        self._range = ActionRange(self.spec, task)

    def to_own(self, action: NDArray[Any]) -> Any:
        """Converts one action to a Gymnasium action, an int (``Discrete``) or an array.

        Args:
            action: An action that fits ``spec``.

        Raises:
            RunError: The action is out of range.
        """
        (native,) = self.to_gymnasium(action[None], 1)
        return native.item() if native.ndim == 0 else native

    def legal(self, action: Any, mask: NDArray[np.bool_]) -> Any:
        """Returns a legal Gymnasium action for any action; see ``legal_actions``.

        Args:
            action: A Gymnasium action of discrete choices.
            mask: ``[1, A]`` bool, the legal choices.
        """
        own = self.from_gymnasium(np.asarray(action)[None])
        (legal,) = legal_actions(own, mask, self.spec.num_choices)
        return self.to_own(legal.reshape(self.spec.shape))

    def from_gymnasium(self, native: NDArray[Any]) -> NDArray[Any]:
        """Converts Gymnasium actions ``[N, ...]`` to actions that fit ``spec``."""
        tensor = self.spec.tensor
        own = native.reshape(len(native), -1)
        if self.spec.is_discrete:
            own = own.astype(np.int64) - self._first
        return own.astype(tensor.dtype).reshape(len(native), *tensor.shape)

    def to_gymnasium(self, actions: NDArray[Any], num_envs: int) -> NDArray[Any]:
        """Converts actions to Gymnasium actions, ``[N, *shape of the space]``.

        Args:
            actions: Actions ``[N, ...]`` that fit ``spec``.
            num_envs: Number N of copies.

        Raises:
            RunError: The shape or dtype is wrong, or an action is out of range.
        """
        self._range.check(actions, num_envs)
        if self.spec.is_discrete:
            native = actions + self._first
        else:
            native = self._range.clip(actions)
        batch: NDArray[Any] = native.reshape(num_envs, *self._shape)
        return batch.astype(self._dtype)


def _entries(
    space: Any, task: str, name: str, keys: tuple[Any, ...]
) -> Iterator[_Entry]:
    """Yields an ``_Entry`` for each array of an observation space, in space order.

    Raises:
        UsageError: A part of the space is of an unsupported kind.
    """
    from gymnasium import spaces

    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.spaces
        named = parts.items() if isinstance(parts, dict) else enumerate(parts)
        for key, part in named:
            yield from _entries(part, task, f"{name}/{key}", (*keys, key))
        return
    if isinstance(space, spaces.Discrete):
        _check_size(space, task, name, int(space.n), _MAX_VALUES, "values")
        values = int(space.start) + np.arange(int(space.n))
        yield _Entry(name, keys, TensorSpec(shape=values.shape), values)
        return
    if isinstance(space, spaces.MultiDiscrete):
        dtype = "float32"
    elif isinstance(space, spaces.MultiBinary):
        dtype = "bool"
    elif isinstance(space, spaces.Box):
        dtype = _DTYPES.get(space.dtype.name, "float32")
    else:
        raise UsageError(
            f"{name} ({one_line(space)}) of {task} must be a Box, Discrete, "
            f"MultiDiscrete or MultiBinary space, or a Dict or Tuple of such; "
            f"wrap the environment, or choose another"
        )
    shape, most = tuple(int(length) for length in space.shape), 0.0
    if 0 in shape:
        raise UsageError(
            f"{name} ({one_line(space)}) of {task} must not be empty; "
            f"wrap the environment, or choose another"
        )
    _check_size(space, task, name, math.prod(shape), _MAX_NUMBERS, "numbers")
    if isinstance(space, spaces.MultiDiscrete):
        most = float((space.start + space.nvec).max())
    elif isinstance(space, spaces.Box):
        sizes = np.abs(np.stack([space.low, space.high]), dtype=np.float64)
        most = float(sizes.max(initial=0.0, where=sizes <= MOST_BOUND))
    yield _Entry(name, keys, TensorSpec(dtype=dtype, shape=shape), most=most)


def _is_large(entry: _Entry) -> bool:
    is_vector = len(entry.spec.shape) != 3 and entry.spec.dtype != "uint8"
    return is_vector and entry.most > _LARGE


def _is_scaled(entry: _Entry) -> bool:
    is_image = len(entry.spec.shape) == 3 and entry.spec.dtype != "uint8"
    return is_image and entry.most > 1.0


def _check_size(
    space: Any, task: str, name: str, count: int, most: int, unit: str
) -> None:
    if count > most:
        raise UsageError(
            f"{name} ({one_line(space)}) of {task} must have at most {most:,} {unit}; "
            f"wrap the environment, or choose another"
        )
