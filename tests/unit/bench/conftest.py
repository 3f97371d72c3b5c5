"""The scripts of benchmarks/ as modules."""

import importlib
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def load_script(monkeypatch):
    """Returns a function that loads a script as a new module."""

    def load(path):
        folder, _, name = path.rpartition("/")
        monkeypatch.syspath_prepend(str(SCRIPTS / folder))
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return load
