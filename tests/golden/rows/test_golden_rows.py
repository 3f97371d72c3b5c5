"""Rows and shuffles must equal the golden files of this folder."""

from __future__ import annotations

import json

import pytest

from tests.golden.rows import regenerate


def test_every_case_is_stored() -> None:
    names = {path.stem for path in regenerate.FOLDER.glob("*.json")}
    assert names == {*regenerate.CASES, "shuffle"}


@pytest.mark.parametrize("name", regenerate.CASES)
def test_rows(name: str) -> None:
    golden = json.loads((regenerate.FOLDER / f"{name}.json").read_text())
    assert regenerate.rows(regenerate.CASES[name]) == golden


def test_shuffle() -> None:
    golden = json.loads((regenerate.FOLDER / "shuffle.json").read_text())
    assert regenerate.shuffle() == golden
