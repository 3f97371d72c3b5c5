import dataclasses

import pytest

from tengen import _core
from tengen.config import field_docs, from_dict, to_dict
from tengen.errors import UsageError
from tengen.search import SearchConfig
from tests.refusals import refused


def native_fields():
    names = vars(_core.SearchSettings)
    return {name for name in names if not name.startswith("_")}


def another(field):
    """Returns a valid value of ``field`` other than its default."""
    return type(field.default)(field.default / 2 + 0.3)


def readers(name):
    """Returns the policies that use the field ``name``."""
    if name == "root_symmetries" or name.startswith("score_"):
        return ["puct", "gumbel"]
    if name == "noise_weight":
        return ["puct", "minigo"]
    for policy in ("gumbel", "minigo"):
        if name.startswith(f"{policy}_"):
            return [policy]
    return ["puct"]


def test_native_settings_have_the_same_fields_and_defaults():
    assert {f.name for f in dataclasses.fields(SearchConfig)} == native_fields()
    native = _core.SearchSettings()
    for field in dataclasses.fields(SearchConfig):
        value = getattr(native, field.name)
        if field.name == "policy":
            assert value == _core.RootPolicy.PUCT
            assert field.default == "puct"
        else:
            assert value == pytest.approx(field.default, rel=1e-6), field.name


def test_every_field_reaches_the_native_settings():
    for field in dataclasses.fields(SearchConfig):
        if field.name == "policy":
            continue
        value = another(field)
        assert value != field.default
        for policy in readers(field.name):
            native = SearchConfig(policy=policy, **{field.name: value}).to_native()
            assert getattr(native, field.name) == pytest.approx(value), field.name
    gumbel = SearchConfig(policy="gumbel").to_native()
    assert gumbel.policy == _core.RootPolicy.GUMBEL
    minigo = SearchConfig(policy="minigo").to_native()
    assert minigo.policy == _core.RootPolicy.MINIGO


def test_every_field_is_documented():
    docs = field_docs(SearchConfig)
    assert set(docs) == native_fields()
    for name in native_fields() - {"policy"}:
        assert docs[name].lower().startswith(", ".join(readers(name))), name


@pytest.mark.parametrize("policy", ["puct", "gumbel", "minigo"])
def test_what_the_policy_does_not_read_is_refused(policy):
    """Defaults are accepted, because run.json contains every field."""
    assert (
        from_dict(SearchConfig, to_dict(SearchConfig(policy=policy))).policy == policy
    )
    for field in dataclasses.fields(SearchConfig):
        if field.name == "policy" or policy in readers(field.name):
            continue
        value = another(field)
        with pytest.raises(UsageError) as error:
            SearchConfig(policy=policy, **{field.name: value})
        line = f"{field.name} ({value}) must be {field.default} with policy {policy}"
        assert str(error.value).startswith(line)


def test_only_minigo_has_several_leaves():
    assert SearchConfig().leaves_at_once == 1
    config = SearchConfig(policy="minigo", minigo_virtual_losses=7)
    assert config.leaves_at_once == 7


def test_minigo_is_for_games_of_the_core_and_for_many_positions():
    minigo = SearchConfig(policy="minigo")
    minigo.check_game(is_external=False)
    SearchConfig().check_game(is_external=True)
    SearchConfig().check_single()
    with refused(UsageError, "search.policy (minigo)"):
        minigo.check_game(is_external=True)
    with refused(UsageError, "search.policy (minigo)"):
        minigo.check_single()
