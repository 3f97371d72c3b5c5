"""The findings of a check, and the comparison of observations with their space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.envs.copies import MOST_FLOAT32, RAISED, not_float32, one_line


class CannotGoOnError(Exception):
    """A recorded violation makes further checks of the environment impossible."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A broken rule of the environment contract, or a warning."""

    rule: str
    """The rule's stable name, such as ``step.reward``."""
    is_broken: bool
    """Whether the finding breaks the contract; otherwise it is a warning."""
    message: str
    """The message, in the form ``<name> (<value>) <rule>; <advice>``."""


class Findings:
    """Collects the first finding of each rule, in the order of discovery.

    Later findings of the same rule are dropped, because a rule that is broken once is
    usually broken at every step.
    """

    def __init__(self) -> None:
        self._found: dict[str, Finding] = {}

    @property
    def all(self) -> list[Finding]:
        """All findings, in the order of discovery."""
        return list(self._found.values())

    @property
    def num_broken(self) -> int:
        """Number of broken rules."""
        return sum(finding.is_broken for finding in self.all)

    def broken(self, rule: str, name: str, seen: object, must: str) -> None:
        """Records that the contract is broken.

        Args:
            rule: See ``Finding``.
            name: Name of the wrong part, such as ``reward``.
            seen: The wrong value.
            must: The rule and the advice, such as ``must be finite; correct it``.
        """
        self._add(rule, True, f"{name} ({one_line(seen, 200)}) {must}")

    def warning(self, rule: str, name: str, seen: object, must: str) -> None:
        """Records a probable error; the arguments are those of ``broken``."""
        self._add(rule, False, f"{name} ({one_line(seen, 200)}) {must}")

    def refused(self, rule: str, message: object) -> None:
        """Records, as a broken rule, an error with which tengen rejected a value."""
        self._add(rule, True, one_line(message, 1000))

    def _add(self, rule: str, is_broken: bool, message: str) -> None:
        finding = Finding(rule=rule, is_broken=is_broken, message=message)
        self._found.setdefault(rule, finding)


class ObservationCheck:
    """Checks each part of an observation against the observation space.

    Args:
        space: The observation space, of a supported kind.
        findings: Receives the violations.
    """

    def __init__(self, space: Any, findings: Findings) -> None:
        self._space = space
        self._findings = findings

    def check(self, observation: Any, where: str) -> None:
        """Records the ways in which an observation does not fit its space.

        Args:
            observation: The observation as the environment returned it.
            where: The episode and step, for error messages.

        Raises:
            CannotGoOnError: The observation cannot be read at all.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            self._check_part(self._space, observation, "observation", where)

    def _check_part(self, space: Any, value: Any, name: str, where: str) -> None:
        from gymnasium import spaces

        if isinstance(space, spaces.Dict | spaces.Tuple):
            for key, part in _parts(space):
                try:
                    entry = value[key]
                except (LookupError, TypeError):
                    self._wrong(
                        "observation.parts",
                        name,
                        _keys(value),
                        f"must have the entry {key!r} of its space {where}; return all "
                        "entries",
                    )
                    raise CannotGoOnError from None
                self._check_part(part, entry, f"{name}/{key}", where)
            self._no_others(space, value, name, where)
            return
        self._check_array(space, value, name, where)

    def _check_array(self, space: Any, value: Any, name: str, where: str) -> None:
        try:
            array = np.asarray(value)
        except RAISED as error:
            self._wrong(
                "observation.dtype",
                name,
                error,
                f"must be an array {where}; return a numpy array",
            )
            raise CannotGoOnError from None
        shape = space.shape or ()
        if array.shape != shape:
            self._wrong(
                "observation.shape",
                name,
                f"shape {array.shape}",
                f"must have the shape {shape} of its space {where}; "
                f"correct one of them",
            )
            raise CannotGoOnError
        if array.dtype.kind not in "biuf":
            self._wrong(
                "observation.dtype",
                name,
                array.dtype,
                f"must hold numbers {where}; return a numpy array",
            )
            raise CannotGoOnError
        # Floats must be finite in float32, the dtype in which agents receive them.
        fits = (np.abs(array) <= MOST_FLOAT32) | (array.dtype.kind != "f")
        if not fits.all():
            value = array[~fits].flat[0]
            self._wrong(
                "observation.finite",
                name,
                value,
                f"{not_float32(value)} {where}; correct its computation",
            )
            return
        if array.dtype != space.dtype and not np.can_cast(array.dtype, space.dtype):
            self._check_lossy(space, array, name, where)
        self._check_bounds(space, array, name, where)

    def _check_lossy(
        self, space: Any, array: NDArray[Any], name: str, where: str
    ) -> None:
        if space.dtype.kind == "f" or (array == array.astype(space.dtype)).all():
            self._findings.warning(
                "observation.type",
                name,
                array.dtype,
                f"should have its space's dtype, {space.dtype}, {where}; add "
                f".astype(np.{space.dtype})",
            )
            return
        self._wrong(
            "observation.dtype",
            name,
            array.dtype,
            f"must have its space's dtype, {space.dtype}, {where}, which cannot "
            f"represent its values; add .astype(np.{space.dtype}) or change the space",
        )

    def _check_bounds(
        self, space: Any, array: NDArray[Any], name: str, where: str
    ) -> None:
        low, high = _bounds(space)
        # Round the values to the Box's dtype, because its bounds are rounded to it too.
        rounded = array.astype(space.dtype) if space.dtype.kind == "f" else array
        outside = (rounded < low) | (rounded > high)
        if not outside.any():
            return
        place = tuple(int(i) for i in np.argwhere(np.atleast_1d(outside))[0])
        at = f" at [{', '.join(map(str, place))}]" if array.shape else ""
        low, high = (np.broadcast_to(b, outside.shape)[outside][0] for b in (low, high))
        self._wrong(
            "observation.bounds",
            name,
            f"{np.atleast_1d(array)[place]}{at}",
            f"must be within its space's bounds, {low} to {high}, {where}; widen the "
            "space, or clip the values",
        )

    def _no_others(self, space: Any, value: Any, name: str, where: str) -> None:
        count = len(list(_parts(space)))
        if len(value) > count:
            self._wrong(
                "observation.parts",
                name,
                _keys(value),
                f"must have only the {count} entries of its space {where}; add the "
                "others to the space, or remove them",
            )

    def _wrong(self, rule: str, name: str, seen: object, must: str) -> None:
        self._findings.broken(rule, name, seen, must)


def is_same(one: Any, other: Any) -> bool:
    """Returns whether two observations are equal, with NaN equal to NaN."""
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(is_same(one[key], other[key]) for key in one)
        )
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(is_same, one, other))
    one, other = np.asarray(one), np.asarray(other)
    return np.array_equal(
        one, other, equal_nan="f" in (one.dtype.kind, other.dtype.kind)
    )


def copied(observation: Any) -> Any:
    """Returns a deep copy of an observation, so that later steps cannot modify it."""
    if isinstance(observation, dict):
        return {key: copied(part) for key, part in observation.items()}
    if isinstance(observation, tuple | list):
        return tuple(copied(part) for part in observation)
    return np.array(observation)


def _parts(space: Any) -> Iterator[tuple[Any, Any]]:
    parts = space.spaces
    yield from parts.items() if isinstance(parts, dict) else enumerate(parts)


def _keys(value: Any) -> str:
    if isinstance(value, dict):
        return f"entries {one_line(list(value))}"
    if isinstance(value, tuple | list):
        return f"{len(value)} entries"
    return type(value).__name__


def _bounds(space: Any) -> tuple[Any, Any]:
    """Returns the bounds of a space's values, both inclusive."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return int(space.start), int(space.start) + int(space.n) - 1
    if isinstance(space, spaces.MultiDiscrete):
        return space.start, space.start + space.nvec - 1
    if isinstance(space, spaces.MultiBinary):
        return 0, 1
    return space.low, space.high
