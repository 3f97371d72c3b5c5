import dataclasses
import json
import math
import typing
from dataclasses import dataclass, field
from typing import Literal

import pytest

from tengen.agents import Agent
from tengen.bounds import bounds
from tengen.config import (
    check,
    check_literals,
    check_range,
    field_docs,
    field_types,
    from_dict,
    to_dict,
)
from tengen.errors import UsageError
from tengen.experience import ExperienceConfig
from tengen.models import ModelMeta
from tengen.nets import NetConfig
from tengen.overrides import override
from tengen.roles import RunConfig
from tengen.search import Level
from tengen.store import Column, StoreConfig
from tests.refusals import refused


@dataclass(frozen=True, kw_only=True)
class Puct:
    """A policy."""

    kind: Literal["puct"] = "puct"
    c_init: float = 1.1
    """Exploration, at least 0,
    over two lines."""

    def __post_init__(self):
        # A message is longer than a value that is shown.
        rule = "must not be negative; raise it, or leave it out for the default"
        check(self.c_init >= 0, "c_init", self.c_init, rule)


@dataclass(frozen=True, kw_only=True)
class Gumbel:
    kind: Literal["gumbel"] = "gumbel"
    num_considered: int = 16


@dataclass(frozen=True, kw_only=True)
class Search:
    num_simulations: int = 64
    """Simulations a move."""
    policy: Puct | Gumbel = field(default_factory=Puct)
    reuse_tree: bool = True


@dataclass(frozen=True, kw_only=True)
class Run:
    task: str
    search: Search = field(default_factory=Search)
    mode: Literal["sync", "async"] = "sync"
    rates: tuple[float, ...] = (0.1, 0.01)
    size: tuple[int, int] = (9, 9)
    limit_s: float | None = None
    options: dict[str, int] = field(default_factory=dict)
    stages: tuple[Search, ...] = ()
    gate: Puct | None = None


def line_of(cls, data):
    with pytest.raises(UsageError) as error:
        from_dict(cls, data)
    message = str(error.value)
    assert "\n" not in message
    assert ";" in message
    return message


def test_round_trip_through_json():
    run = Run(
        task="gomoku/9",
        search=Search(policy=Gumbel(num_considered=4)),
        limit_s=2.5,
        options={"a": 1},
        stages=(Search(num_simulations=8),),
        gate=Puct(c_init=2.0),
    )
    assert from_dict(Run, json.loads(json.dumps(to_dict(run)))) == run


def test_defaults_fill_missing_keys():
    run = from_dict(Run, {"task": "go/9", "search": {"num_simulations": 8}})
    assert run == Run(task="go/9", search=Search(num_simulations=8))


@pytest.mark.parametrize(
    ("data", "start"),
    [
        ({}, "task (nothing) is required"),
        (
            {"task": "x", "search": {"num_simulation": 8}},
            'search.num_simulation (8) is not a known key; did you mean "num_simul',
        ),
        ({"task": "x", "mode": "asynch"}, 'mode ("asynch") is not known; did you mean'),
        (
            {"task": "x", "search": {"policy": {"kind": "gumble"}}},
            'search.policy.kind ("gumble") is not known; did you mean "gumbel"?',
        ),
        (
            {"task": "x", "search": {"policy": {"kind": "puct", "num_considered": 4}}},
            "search.policy.num_considered (4) is not",
        ),
        (
            {"task": "x", "search": {"policy": {"c_init": -1}}},
            "search.policy.c_init (-1.0) must not be negative; raise it, or leave it",
        ),
        ({"task": 3}, "task (3) must be text"),
        ({"task": "x", "search": 3}, "search (3) must be a mapping"),
        (
            {"task": "x", "search": {"num_simulations": 1.5}},
            "search.num_simulations (1.5) must be a whole number",
        ),
        (
            {"task": "x", "search": {"num_simulations": True}},
            "search.num_simulations (True) must be a whole number",
        ),
        (
            {"task": "x", "search": {"reuse_tree": 1}},
            "search.reuse_tree (1) must be true or false",
        ),
        ({"task": "x", "rates": 0.5}, "rates (0.5) must be a list"),
        ({"task": "x", "rates": [0.5, "a"]}, 'rates[1] ("a") must be a number'),
        ({"task": "x", "size": [9]}, "size ([9]) must be a list of 2"),
        ({"task": "x", "limit_s": "long"}, 'limit_s ("long") must be a number'),
        ({"task": "x", "limit_s": math.nan}, "limit_s (nan) must be a finite number"),
        ({"task": "x", "limit_s": True}, "limit_s (True) must be a number"),
        ({"task": "x", "options": {"a": "b"}}, 'options.a ("b") must be a whole'),
        (
            {"task": "x", "stages": [{}, {"reuse_tree": 0}]},
            "stages[1].reuse_tree (0) must be true or false",
        ),
    ],
)
def test_what_does_not_fit_is_refused(data, start):
    assert line_of(Run, data).startswith(start)


def test_int_passes_for_float_and_becomes_one():
    limit = from_dict(Run, {"task": "x", "limit_s": 3}).limit_s
    assert limit == 3.0
    assert isinstance(limit, float)


def test_union_is_told_apart_by_kind():
    data = {"task": "x", "search": {"policy": {"kind": "gumbel"}}}
    assert from_dict(Run, data).search.policy == Gumbel()


def test_override_reads_literals_and_words():
    run = override(
        Run(task="x"),
        [
            "search.num_simulations=128",
            "mode=async",
            "rates=[1, 2]",
            "size=(5, 5)",
            "limit_s=1e-3",
            "options.depth=3",
            "search.reuse_tree=False",
        ],
    )
    assert run.search.num_simulations == 128
    assert run.mode == "async"
    assert run.rates == (1.0, 2.0)
    assert run.size == (5, 5)
    assert run.limit_s == 1e-3
    assert run.options == {"depth": 3}
    assert run.search.reuse_tree is False
    assert override(run, ["limit_s=null"]).limit_s is None


def test_override_of_kind_takes_the_other_config_with_its_defaults():
    run = override(
        Run(task="x", search=Search(policy=Puct(c_init=3.0))),
        ["search.policy.kind=gumbel", "search.policy.num_considered=2"],
    )
    assert run.search.policy == Gumbel(num_considered=2)
    same = override(
        Run(task="x", search=Search(policy=Puct(c_init=3.0))),
        ["search.policy.kind=puct"],
    )
    assert same.search.policy == Puct(c_init=3.0)


def test_override_reaches_into_an_absent_config():
    assert override(Run(task="x"), ["gate.c_init=2"]).gate == Puct(c_init=2.0)


@pytest.mark.parametrize(
    ("setting", "start"),
    [
        ("search.num_simulations", "setting (search.num_simulations) must be path"),
        ("serach.num_simulations=3", "serach (3) is not a known key; did you mean"),
        ("search.num_simulation=3", "search.num_simulation (3) is not a known key"),
        (
            "num_simulations=3",
            'num_simulations (3) is not a known key; did you mean "search.num_simul',
        ),
        (
            "search.c_init=3",
            'search.c_init (3) is not a known key; did you mean "search.policy.c_init"',
        ),
        ("mode.x=3", "mode.x (3) must name a field; mode has no fields"),
        ("search.num_simulations=many", 'search.num_simulations ("many") must be'),
        ("search.policy.kind=gumble", 'search.policy.kind ("gumble") is not known'),
        ("search.policy.c_init=-1", "search.policy.c_init (-1.0) must not be"),
        ("search.policy.kind=[1]", "search.policy.kind ([1]) is not known"),
        ("limit_s=1" + "0" * 400, "limit_s (1"),
        ("limit_s=" + "[" * 100_000, 'limit_s ("['),
        ("search.num_simulations=" + "9" * 5000, "search.num_simulations ("),
    ],
)
def test_override_refuses(setting, start):
    with pytest.raises(UsageError) as error:
        override(Run(task="x"), [setting])
    assert str(error.value).startswith(start)


def configs_in(*classes):
    """Returns the config classes given, and every one that a field of them may hold."""
    found, members = {}, list(classes)
    while members:
        member = members.pop()
        if dataclasses.is_dataclass(member) and member not in found:
            found[member] = None
            members += typing.get_type_hints(member).values()
        members += typing.get_args(member)
    return list(found)


KINDS = [
    kind
    for family in (Agent, ExperienceConfig, NetConfig)
    for kind in family.kinds().values()
]
EVERY_CONFIG = pytest.mark.parametrize(
    "cls",
    configs_in(RunConfig, ModelMeta, StoreConfig, Level, *KINDS),
    ids=lambda cls: cls.__name__,
)


def build(cls, **values):
    """Makes a config whose other fields, where they are required, are anything.

    A table checks its columns before its ranges.
    """
    given = {"columns": {"x": Column(dtype="int8")}}
    required = {
        field.name: given.get(field.name, 3)
        for field in dataclasses.fields(cls)
        if field.default is field.default_factory is dataclasses.MISSING
    }
    return cls(**{**required, **values})


@EVERY_CONFIG
def test_every_literal_is_checked_in_a_config_built_by_hand(cls):
    for name, hint in typing.get_type_hints(cls).items():
        if typing.get_origin(hint) is Literal:
            with refused(UsageError, f'{name} ("nonsense")'):
                build(cls, **{name: "nonsense"})


def out_of_range(told, is_whole):
    """Yields the nearest numbers that a range does not have, and one that is none."""
    step = 1 if is_whole else 0.001
    if told.low is not None:
        yield told.low if told.above else told.low - step
    if told.high is not None:
        yield told.high if told.below else told.high + step
    if not is_whole:
        yield math.nan


@EVERY_CONFIG
def test_every_range_is_checked_in_a_config_built_by_hand(cls):
    for name, told in bounds(cls).items():
        hint = field_types(cls)[name]
        is_tuple = "tuple" in str(hint)
        is_whole = "float" not in str(hint)
        for value in out_of_range(told, is_whole):
            number = value if is_whole else float(value)
            with refused(UsageError, f"{name} ({number})"):
                build(cls, **{name: (number,) if is_tuple else number})


def test_a_literal_is_neither_another_type_nor_none():
    @dataclass(frozen=True, kw_only=True)
    class Sizes:
        size: Literal[1, 2] = 1

    for value in (True, None, 3, "1"):
        with refused(UsageError, "size (", "1, 2"):
            check_literals(Sizes(size=value))
    check_literals(Sizes(size=2))


def test_a_range_has_its_ends():
    for value in (1, 4):
        check_range("n", value, 1, 4)
    for value in (0, 5, math.nan):
        with refused(UsageError, f"n ({value})", "more"):
            check_range("n", value, 1, 4, "more")


def test_field_docs():
    assert field_docs(Puct) == {"c_init": "Exploration, at least 0, over two lines."}
    assert field_docs(Search)["num_simulations"] == "Simulations a move."
