"""Declared ranges: refusals in the words that checks by hand have, and for people."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import pytest

from tengen.bounds import bounded, bounds, check_fields
from tengen.config import from_dict
from tengen.errors import UsageError
from tengen.overrides import override
from tests.refusals import refused


@dataclass(frozen=True, kw_only=True)
class Actor:
    kind: Literal["actor"] = "actor"
    num_envs: int = bounded(16, 1, 4096, "8 to 64 suits a CPU")
    share: float = bounded(0.5, 0, 1, "use 0.5", above=True)
    rate: float = bounded(1.0, 0, above=True, rule="must be positive; raise it")
    decay: float = bounded(0.9, 0, 1, below=True)
    samples: float = bounded(4.0, 0, math.inf, "use 4", above=True, below=True)
    limit: int | None = bounded(None, 1, hint="leave it out")
    most: float = bounded(-1.0, None, 0)
    sizes: tuple[int, ...] = bounded((8, 4), 1, 64)

    def __post_init__(self):
        check_fields(self)


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("num_envs", 0, "num_envs (0) must be 1 to 4096; 8 to 64 suits a CPU"),
        ("num_envs", 4097, "num_envs (4097) must be 1 to 4096; 8 to 64 suits a CPU"),
        ("share", 0.0, "share (0.0) must be in (0, 1]; use 0.5"),
        ("share", math.nan, "share (nan) must be in (0, 1]; use 0.5"),
        ("rate", 0.0, "rate (0.0) must be positive; raise it"),
        ("decay", 1.0, "decay (1.0) must be in [0, 1); change it"),
        ("samples", math.inf, "samples (inf) must be above 0; use 4"),
        ("limit", 0, "limit (0) must be at least 1; leave it out"),
        ("most", 0.5, "most (0.5) must be at most 0; change it"),
        ("sizes", (8, 65), "sizes (65) must be 1 to 64; change it"),
        ("kind", "learner", 'kind ("learner") is not known; known: actor'),
    ],
)
def test_what_is_out_of_range_is_refused(name, value, line):
    with pytest.raises(UsageError) as caught:
        Actor(**{name: value})
    assert str(caught.value) == line


def test_the_ends_of_a_range_are_in_it():
    Actor(num_envs=1, share=1.0, decay=0.0, limit=None, most=0.0, sizes=())
    Actor(num_envs=4096, limit=1, sizes=(1, 64))


def test_defaults_and_settings_are_those_of_any_field():
    assert from_dict(Actor, {}) == Actor()
    assert override(Actor(), ["num_envs=8"]).num_envs == 8
    with refused(UsageError, "num_envs ("):
        override(Actor(), ["num_envs=true"])


def test_ranges_for_people():
    assert {name: str(told) for name, told in bounds(Actor).items()} == {
        "num_envs": "1 to 4096",
        "share": "in (0, 1]",
        "rate": "above 0",
        "decay": "in [0, 1)",
        "samples": "above 0",
        "limit": "at least 1",
        "most": "at most 0",
        "sizes": "1 to 64",
    }


def test_a_subclass_with_another_default_keeps_the_range():
    @dataclass(frozen=True, kw_only=True)
    class Base:
        size: int = bounded(1, 1, 4)

        def __post_init__(self):
            check_fields(self)

    @dataclass(frozen=True, kw_only=True)
    class Other(Base):
        size: int = 2

    assert Other().size == 2
    with refused(UsageError, "size (5)"):
        Other(size=5)
    with refused(UsageError, "size (2.5)"):
        Other(size=2.5)
