"""Every setting that pages name exists in the config of some recipe."""

import dataclasses
import re

import pytest

from tengen.recipes import make_config
from tests.unit.docs.pages import ROOT

PAGES = ("docs/coming_from.md", "README.md", "docs/howto/play/python.md")
SECTIONS = "agent|store|net|learner|inference|launch|observe"
RECIPES = {
    "go/9": (None,),
    "CartPole-v1": ("vtrace", "ppo", "sac", "r2d2", "dqn"),
}
# Followed by keys that the user chooses.
OPEN = ("launch.roles.",)


def paths(config, where=""):
    for item in dataclasses.fields(config):
        value = getattr(config, item.name)
        yield f"{where}{item.name}"
        if dataclasses.is_dataclass(value):
            yield from paths(value, f"{where}{item.name}.")


@pytest.fixture(scope="module")
def known():
    pytest.importorskip("gymnasium")
    return {
        path
        for task, recipes in RECIPES.items()
        for recipe in recipes
        for path in paths(make_config(task, None, recipe))
    }


@pytest.mark.parametrize("page", PAGES)
def test_settings_are_known(page, known):
    text = (ROOT / page).read_text()
    named = set(
        re.findall(rf"(?<![\w./])((?:{SECTIONS})\.[a-z_.]*[a-z_])(?![a-z_(])", text)
    )
    pages = {n for n in named if n.endswith((".md", ".py"))}
    unknown = {n for n in named - pages if not n.startswith(OPEN)} - known
    assert unknown == set()
    assert page == "README.md" or named


def test_an_unknown_setting_is_found(known):
    assert "agent.discount" in known
    assert "agent.gamma" not in known
