"""Declared ranges of a config's fields.

A range is declared with its field and the field's docstring::

    @dataclass(frozen=True, kw_only=True)
    class SearchConfig:
        num_simulations: int = bounded(64, 1, 65_535, "64 is usual")
        \"\"\"Simulations of a search.\"\"\"
        share: float = bounded(1.0, 0, 1, "use 1", above=True)
        \"\"\"Share of full searches.\"\"\"

        def __post_init__(self) -> None:
            check_fields(self)

Checks that involve several fields follow ``check_fields`` in ``__post_init__``.
``tengen recipes TASK`` shows the ranges.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, get_args

from tengen.config import check, check_literals, field_types

_BOUNDS = "bounds"


@dataclasses.dataclass(frozen=True)
class Bounds:
    """The declared range of a config field."""

    low: float | None
    """The minimum; None for no bound."""
    high: float | None
    """The maximum; None for no bound."""
    above: bool
    """Whether ``low`` itself is out of range."""
    below: bool
    """Whether ``high`` itself is out of range."""
    rule: str
    """The text of the rule and the advice, for error messages."""

    def hold(self, value: float) -> bool:
        """Returns whether ``value`` is in the range; false for NaN."""
        over = self.low is None or (
            value > self.low if self.above else value >= self.low
        )
        under = self.high is None or (
            value < self.high if self.below else value <= self.high
        )
        return over and under

    def __str__(self) -> str:
        """Returns the range as text: ``1 to 64``, ``above 0``, ``in [0, 1)``."""
        low, high = self.low, None if self.high == math.inf else self.high
        if high is None:
            return f"{'above' if self.above else 'at least'} {low}"
        if low is None:
            return f"{'below' if self.below else 'at most'} {high}"
        if not self.above and not self.below:
            return f"{low} to {high}"
        return (
            f"in {'(' if self.above else '['}{low}, {high}{')' if self.below else ']'}"
        )


def bounded(
    default: Any,
    low: float | None,
    high: float | None = None,
    hint: str = "change it",
    *,
    above: bool = False,
    below: bool = False,
    rule: str = "",
) -> Any:
    """Returns a dataclass field with a range, which ``check_fields`` checks.

    ``check_fields`` accepts None, checks each entry of a tuple, and accepts only
    integers for a field of type int. To allow every finite number from ``low`` on, pass
    ``high=math.inf, below=True``.

    Args:
        default: The field's default.
        low: The minimum; None for no bound.
        high: The maximum; None for no bound.
        hint: The advice in the error message, as in ``must be 1 to 64; HINT``.
        above: Whether ``low`` itself is out of range.
        below: Whether ``high`` itself is out of range.
        rule: Both parts of the message; if empty, made from the range and ``hint``.
    """
    told = Bounds(low, high, above, below, rule)
    if not rule:
        told = dataclasses.replace(told, rule=f"must be {told}; {hint}")
    return dataclasses.field(default=default, metadata={_BOUNDS: told})


def bounds(cls: type) -> dict[str, Bounds]:
    """Returns the declared ranges of a config's fields, by name.

    A field keeps its range if a subclass changes only its default.
    """
    found: dict[str, Bounds] = {}
    for base in reversed(cls.__mro__):
        fields: dict[str, Any] = vars(base).get("__dataclass_fields__", {})
        for name, field in fields.items():
            if _BOUNDS in field.metadata:
                found[name] = field.metadata[_BOUNDS]
    names = [field.name for field in dataclasses.fields(cls)]
    return {name: found[name] for name in names if name in found}


def check_fields(cfg: Any) -> None:
    """Raises UsageError if a field is out of its range or not in its ``Literal``.

    Call this in ``__post_init__``. Checks the Literal fields first, then the ranges in
    the order of the fields.
    """
    check_literals(cfg)
    kinds = field_types(type(cfg))
    for name, told in bounds(type(cfg)).items():
        value = getattr(cfg, name)
        members = {kinds[name], *get_args(kinds[name])}
        is_whole = int in members and float not in members
        for entry in value if isinstance(value, tuple) else (value,):
            if entry is None:
                continue
            # Reject numpy integers, because they cannot be saved as JSON.
            is_right = not is_whole or isinstance(entry, int)
            check(is_right, name, entry, "must be a whole number; write it as an int")
            check(told.hold(entry), name, entry, told.rule)
