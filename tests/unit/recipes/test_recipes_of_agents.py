"""Which recipe an agent has that no row of the table names."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tengen import cli

# In a process of its own, as a class of an agent is known from its making on.
_OWN = """
from dataclasses import dataclass
from typing import Literal
from tengen.agents.alphazero import AlphaZero
from tengen.recipes import make_config

usual = {task: make_config(task, None, None) for task in ("tictactoe", "go/9")}

@dataclass(frozen=True, kw_only=True)
class Variant(AlphaZero):
    kind: Literal["variant"] = "variant"
    extra: float = 0.5

for task, config in usual.items():
    own = make_config(task, "variant", None)
    assert type(own.agent) is Variant and own.agent.extra == 0.5
    assert own.agent.actor == config.agent.actor != AlphaZero().actor
    assert (own.net, own.store) == (config.net, config.store)
    # Nobody gets it who has not asked for it.
    assert make_config(task, None, None) == config
"""


def test_an_agent_made_of_another_has_its_recipes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _OWN], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_table_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["recipes", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out.splitlines()[-1])["recipes"]
    assert {"name": "go", "agent": "alphazero"}.items() <= rows[3].items()
    assert all(set(row) == {"name", "agent", "tasks"} for row in rows)
