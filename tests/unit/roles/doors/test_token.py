"""The run's token, which a role with ``--connect`` gets in its environment."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from tengen.errors import UsageError
from tengen.roles import doors
from tengen.roles.doors import STORE, TOKEN_VARIABLE, way_to
from tengen.run import RunDirectory
from tests.refusals import refused

TOKEN = 32 * "0"
READS = f"import os; print(os.environ.get({TOKEN_VARIABLE!r}))"


def connect_of(*words):
    parser = argparse.ArgumentParser()
    doors.add_connect_arguments(parser)
    return doors.connect_of(parser.parse_args(words))


@pytest.mark.parametrize("words", [(), ("--connect", "127.0.0.1:7000")])
def test_what_a_role_starts_does_not_have_it(monkeypatch, tmp_path, words):
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    connect = connect_of(*words)
    command = [sys.executable, "-c", READS]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == "None\n"
    if connect is not None:
        assert way_to(RunDirectory(tmp_path), STORE, connect).token == TOKEN


def test_a_role_without_it_is_refused(monkeypatch, tmp_path):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    connect = connect_of("--connect", "127.0.0.1:7000")
    with refused(UsageError, f"token ({TOKEN_VARIABLE}, not set)"):
        way_to(RunDirectory(tmp_path), STORE, connect)
