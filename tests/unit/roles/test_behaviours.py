"""What an actor's bandits know outlives the actor's process."""

import contextlib
import json
import math

import pytest

from tengen.actors import Behaviours
from tengen.errors import RunError
from tengen.games import allow
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, write_config
from tengen.run import RunDirectory
from tests.refusals import refused

pytest.importorskip("gymnasium")

TASK = "tests.environments:Catch"
SETTINGS = ("agent.actor.num_envs=3", "agent.actor.turn_steps=20")


def turned(run, agent, num_turns=1):
    """Makes a turn of each role in a new process, as it were, and more of the actor."""
    allow(TASK)
    config = override(make_config(TASK, agent, None), SETTINGS)
    if run.is_new:
        write_config(run, config)
    context = RoleContext()
    with contextlib.ExitStack() as stack:
        for name in ("learn", "export", "gate", "actor"):
            role = make_role(name, config, run, context)
            stack.callback(role.close)
            role.turn()
        for _ in range(num_turns - 1):
            role.turn()


def kept(run):
    content = json.loads((run.actors / "behaviour-0.json").read_text())
    assert content["schema"] == 1
    return content["copies"]


def test_bandits_go_on_after_a_restart(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    turned(run, "agent57")
    first = kept(run)
    assert [len(rows) > 0 for rows in first] == [True] * 3
    assert {entry[1] for rows in first for entry in rows} <= {-1.0, 1.0}
    turned(run, "agent57")
    second = kept(run)
    for before, after in zip(first, second, strict=True):
        assert after[: len(before)] == before
        assert len(after) > len(before)


def test_the_last_turn_of_an_actor_is_kept(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    turned(run, "agent57")
    first = kept(run)
    turned(run, "agent57", num_turns=2)
    # Every turn has as many steps, and the second of a process is saved at its end.
    assert min(map(len, kept(run))) >= 2.5 * max(map(len, first))


class Kept:
    """A behaviour with the given state."""

    def __init__(self, rows):
        self.rows = rows

    def state(self):
        return self.rows

    def load_state(self, rows):
        self.rows[: len(rows)] = rows[: len(self.rows)]


@pytest.mark.parametrize(
    ("save_s", "expected"), [(0.0, [0, 1, 2]), (math.inf, [0, 0, 0])]
)
def test_the_file_is_written_after_some_seconds_and_at_the_end(
    tmp_path, save_s, expected
):
    path = tmp_path / "actors" / "behaviour-0.json"
    behaviours, one = Behaviours(path, save_s), Kept([[], []])
    behaviours.add(one)
    written = []
    for step in range(3):
        one.rows[0] = [[0, float(step)]]
        behaviours.save()
        written.append(json.loads(path.read_text())["copies"][0][0][1])
    assert written == expected
    behaviours.close()
    assert json.loads(path.read_text())["copies"] == [[[0, 2.0]], []]


def test_copies_that_are_not_there_keep_their_windows(tmp_path):
    path = tmp_path / "behaviour-0.json"
    rows = [[[0, 1.0]], [[1, 2.0]], [[2, 3.0]]]
    path.write_text(json.dumps({"schema": 1, "copies": rows}))
    behaviours, one = Behaviours(path, 0.0), Kept([[]])
    behaviours.add(one)
    one.rows[0] = [[0, 5.0]]
    behaviours.close()
    assert json.loads(path.read_text())["copies"] == [[[0, 5.0]], *rows[1:]]


def test_an_empty_file_is_no_file(tmp_path):
    path = tmp_path / "behaviour-0.json"
    path.touch()
    one = Kept([[[0, 1.0]]])
    Behaviours(path, 0.0).add(one)
    assert one.rows == [[[0, 1.0]]]


def test_a_damaged_file_is_named_and_nothing_is_overwritten(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    turned(run, "agent57")
    path = run.actors / "behaviour-0.json"
    damaged = (b"{", b'{"schema": 1}', b'{"schema": 1, "copies": ""}')
    for content in (*damaged, b'{"schema": 1, "copies": [[["a"]]]}'):
        path.write_bytes(content)
        with refused(RunError, str(path)):
            turned(run, "agent57")
        assert path.read_bytes() == content


def test_an_agent_without_bandits_writes_no_file(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    turned(run, "ngu")
    assert not run.actors.exists()
