"""The config of self-play and its twin in the core."""

import dataclasses

import pytest

from tengen import _core
from tengen.actors import SelfplayConfig
from tengen.config import fill_native
from tengen.errors import UsageError
from tengen.search import SearchConfig
from tests.refusals import refused

# Fields of the config that say nothing to a worker, or say it in another unit.
OWN = {
    "kind",
    "games_per_generation",
    "cache_mib",
    "resign_max_false_share",
    "variety",
    "snapshot_s",
    "switch_models",
}


def native_fields():
    return {name for name in vars(_core.SelfplaySettings) if not name.startswith("_")}


def test_the_core_has_the_same_fields_and_defaults():
    fields = {field.name for field in dataclasses.fields(SelfplayConfig)}
    assert native_fields() == fields - OWN | {"cache_bytes"}
    made, native = SelfplayConfig().to_native(), _core.SelfplaySettings()
    for name in native_fields() - {"search"}:
        assert getattr(made, name) == getattr(native, name), name


def test_every_field_reaches_the_core():
    changes = {
        "full_simulations": 7,
        "cheap_simulations": 3,
        "full_probability": 0.25,
        "temperature_early": 0.5,
        "temperature_late": 0.125,
        "temperature_halflife": 4.0,
        "book_share": 0.625,
        "max_opening_plies": 5,
        "policy_opening_plies": 2.5,
        "policy_opening_temperature": 0.75,
        "early_fork_share": 0.25,
        "early_fork_plies": 3.5,
        "early_fork_choices": 5,
        "late_fork_share": 0.5,
        "late_fork_choices": 6,
        "reduce_above": 0.875,
        "reduced_weight": 0.25,
        "resign_above": 0.75,
        "resign_playout_share": 0.5,
        "policy_surprise_share": 0.375,
        "value_surprise_share": 0.125,
        "settled_playout_share": 0.25,
        "lead_share": 0.125,
        "lead_simulations": 4,
        "reuse_tree": False,
        "num_slots": 9,
    }
    of_minigo = {
        "soft_pick_plies": 8,
        "soft_pick_exponent": 0.5,
        "restrict_pass_alive_after": 2,
        "resign_from": 0.75,
        "may_pass": False,
        "prunes_target": False,
    }
    fields = native_fields() - {"search", "cache_bytes"}
    assert set(changes) | set(of_minigo) == fields
    minigo = SelfplayConfig(**of_minigo, search=SearchConfig(policy="minigo"))
    for name, value in of_minigo.items():
        assert getattr(minigo.to_native(), name) == value, name
    search = SearchConfig(cpuct=2.5)
    native = SelfplayConfig(**changes, cache_mib=3, search=search).to_native()
    for name, value in changes.items():
        assert getattr(native, name) == value, name
    assert native.cache_bytes == 3 << 20
    assert native.search.cpuct == 2.5


def test_a_native_field_without_a_twin_is_an_error():
    with refused(AttributeError, "cache_bytes"):
        fill_native(
            SelfplayConfig(), _core.SelfplaySettings(), search=_core.SearchSettings()
        )


def test_surprise_shares_have_one_whole():
    SelfplayConfig(policy_surprise_share=0.9, value_surprise_share=0.1)
    with refused(UsageError, "early_fork_share (0.9)"):
        SelfplayConfig(early_fork_share=0.9, late_fork_share=0.2)
    with refused(UsageError, "late_fork_choices (2)"):
        SelfplayConfig(late_fork_choices=2)
    with refused(UsageError, "policy_surprise_share (0.9)"):
        SelfplayConfig(policy_surprise_share=0.9, value_surprise_share=0.2)


def refusal_of(fields):
    """Returns what a config says against these fields; empty where it takes them."""
    try:
        SelfplayConfig(**fields)
    except UsageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("policy", ["puct", "gumbel", "minigo"])
def test_what_the_policy_does_not_read_is_refused(policy):
    """Each field is read by minigo alone, by the others, or by all."""
    search = SearchConfig(policy=policy)
    refused = set()
    for field in dataclasses.fields(SelfplayConfig):
        if field.name in ("search", "variety"):
            continue
        value = field.default
        value = not value if isinstance(value, bool) else type(value)(value / 2 + 0.25)
        if field.name in ("early_fork_choices", "late_fork_choices", "cache_mib"):
            value = 9
        elif value == field.default or field.name == "max_opening_plies":
            value = 1
        line = refusal_of({"search": search, field.name: value})
        if line:
            told = f"{field.name} ({value}) must be {field.default} with search.pol"
            assert line.startswith(told)
            refused.add(field.name)
    of_minigo = {
        "soft_pick_plies",
        "soft_pick_exponent",
        "restrict_pass_alive_after",
        "resign_from",
        "may_pass",
        "prunes_target",
    }
    if policy != "minigo":
        assert refused == of_minigo
        return
    shared = {
        "games_per_generation",
        "full_simulations",
        "cheap_simulations",
        "full_probability",
        "book_share",
        "max_opening_plies",
        "settled_playout_share",
        "snapshot_s",
        "switch_models",
        "num_slots",
        "cache_mib",
    }
    names = {field.name for field in dataclasses.fields(SelfplayConfig)}
    assert refused == names - shared - of_minigo - {"search", "variety"}


def test_games_that_cannot_be_gone_on_with_follow_no_model():
    minigo = SearchConfig(policy="minigo")
    assert SelfplayConfig().follows_models
    assert not SelfplayConfig(switch_models=False).follows_models
    assert SelfplayConfig(search=minigo, full_probability=0.5).follows_models
    assert not SelfplayConfig(search=minigo).follows_models
