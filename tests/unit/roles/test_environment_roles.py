"""A run of environments, role by role: what it counts, and what it keeps."""

import dataclasses
import functools
import json
import shutil
import time

import numpy as np
import pytest

from tengen import envs
from tengen.errors import RunError, UsageError
from tengen.evaluation import read_records
from tengen.evaluation.ratings.ladder import team_ratings
from tengen.games import allow
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, write_config
from tengen.roles.host import RoleHost
from tengen.run import RunDirectory
from tests import masked_environments
from tests.refusals import refused

pytest.importorskip("gymnasium")

NAMES = ("learn", "export", "gate", "actor")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of four turns in two calls, and what its last learner's turn reported."""
    run = RunDirectory.create_or_resume(tmp_path_factory.mktemp("environments"))
    config = make_config("CartPole-v1", None, None)
    # The queue never runs empty: some unrolls wait when a call ends.
    learner = dataclasses.replace(config.learner, batch_size=24)
    config = dataclasses.replace(config, learner=learner)
    write_config(run, config)
    acted = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tengen.roles.judging.gate._NUM_KEPT", 2)
        for _ in range(2):
            context = RoleContext()
            roles = {name: make_role(name, config, run, context) for name in NAMES}
            for _ in range(2):
                for name in NAMES:
                    report = roles[name].turn()
                acted.append(report)
            learned = roles["learn"].turn()
            for role in roles.values():
                role.close()
    return run, acted, learned


def test_counts_go_on_after_a_resume(trained):
    _, acted, learned = trained
    for name in ("num_rows", "num_episodes"):
        assert learned["table"][name] == sum(report[name] for report in acted)
    assert learned["table"]["num_items"] > 0
    assert learned["generation"] == 4


def test_old_models_are_retired(trained):
    run, _, _ = trained
    numbers = run.models.numbers()
    assert len(numbers) == 2
    assert numbers[0] > 0
    assert np.diff(numbers) == 1


@pytest.mark.parametrize("task", ["Raising", "CartPole-v1"])
def test_an_actor_that_failed_is_not_taken_for_one_that_hangs(
    task, tmp_path, monkeypatch
):
    """Its watch would end a process that may go on without it."""
    run = RunDirectory.create_or_resume(tmp_path / "run")
    is_own = task == "Raising"
    if is_own:
        task = "tests.environments:Raising"
        allow(task)
    config = override(
        make_config(task, "vtrace", None), ["agent.actor.step_timeout_s=0.2"]
    )
    write_config(run, config)
    died = []
    context = RoleContext(die=died.append)
    roles = {name: make_role(name, config, run, context) for name in NAMES[:3]}
    for role in roles.values():
        role.turn()
    if is_own:
        roles["actor"] = make_role("actor", config, run, context)
        with refused(RunError, "must not raise"):
            roles["actor"].turn()
    else:
        monkeypatch.setattr("tengen.envs.make_groups", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            make_role("actor", config, run, context)
    time.sleep(0.6)
    assert died == []
    for role in roles.values():
        role.close()


def test_an_actor_compiles_its_environment_before_the_first_reset(
    tmp_path, monkeypatch
):
    calls = []

    class Compiled(envs.EnvWrapper):
        def compile(self):
            calls.append("compile")

        def reset(self):
            calls.append("reset")
            return super().reset()

    run = RunDirectory.create_or_resume(tmp_path / "run")
    config = make_config("CartPole-v1", "vtrace", None)
    write_config(run, config)
    make = functools.partial(envs.make, "CartPole-v1", config.agent.actor.num_envs, 0)
    monkeypatch.setattr("tengen.envs.make_groups", lambda *_: [Compiled(make())])
    role = make_role("actor", config, run, RoleContext())
    assert calls[:1] == ["compile"]
    role.close()


@pytest.mark.parametrize(("kind", "reads"), [("ppo", False), ("qmix", True)])
def test_only_agents_that_learn_from_the_global_state_compute_it(kind, reads, tmp_path):
    from tests.team_environments import CountedState

    task = "tests.team_environments:CountedState"
    allow(task)
    config = make_config(task, kind, None)
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, config)
    host = RoleHost(run, RoleContext(), task)
    CountedState.num_read = 0
    for name in ("learn", "export", "gate", "actor"):
        host.turn(name, {"sealed": 0})
    host.close()
    assert (CountedState.num_read > 0) == reads


@pytest.mark.parametrize("kind", ["dqn", "ppo"])
def test_a_run_resumes_after_its_environment_has_got_a_mask(kind, tmp_path):
    """With a replay only after the steps without masks are removed."""
    task = "tests.masked_environments:BlindDoors"
    allow(task)
    run = RunDirectory.create_or_resume(tmp_path / "run")
    config = make_config(task, kind, None)
    write_config(run, override(config, ["learner.batch_size=8"]))
    names = ("learn", "export", "gate", "actor", "learn")
    host = RoleHost(run, RoleContext(), task)
    for name in names:
        host.turn(name, {"sealed": 0})
    host.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(masked_environments, "BlindDoors", masked_environments.Doors)
        host = RoleHost(run, RoleContext(), task)
        if kind == "dqn":
            wanted = "steps.columns.action_mask (['bool', [8], 1]) must be absent"
            with refused(UsageError, wanted, f"{run.experience / 'steps'}; "):
                host.turn("learn", {"sealed": 0})
            shutil.rmtree(run.experience / "steps")
        for name in names:
            host.turn(name, {"sealed": 0})
        host.close()


DUEL = "tests.team_environments:Duel"


@pytest.fixture
def duel(tmp_path):
    """The config and the run of a game of two teams, with opponents."""
    allow(DUEL)
    run = RunDirectory.create_or_resume(tmp_path / "run")
    settings = ["agent.actor.opponents=0.5", "agent.actor.num_envs=4"]
    settings += ["learner.batch_size=8"]
    config = override(make_config(DUEL, "ppo", None), settings)
    write_config(run, config)
    return config, run


def num_games(record):
    return record.wins_a + record.draws + record.wins_b


def test_teams_are_rated_against_earlier_models(duel):
    config, run = duel
    assert config.schedule.rating == "rate"
    context = RoleContext()
    roles = {name: make_role(name, config, run, context) for name in (*NAMES, "rate")}
    assert roles["rate"].turn() is None
    for _ in range(3):
        for name in NAMES:
            roles[name].turn()
        report = roles["rate"].turn()
    assert report["model"] == run.models.latest() == 2
    records = read_records(run)
    assert [(record.a, record.b) for record in records] == [
        ("000001", "000000"),
        ("000002", "000000"),
        ("000002", "000001"),
    ]
    ratings = team_ratings(records)
    assert ratings["000000"].elo == 0.0
    assert report["rating"] == ratings["000002"].elo
    assert report["rating_error"] == ratings["000002"].error > 0
    assert {num_games(record) for record in records} == {32}
    assert len({record.seed for record in records}) == 3
    assert roles["rate"].turn() is None
    for name in NAMES:
        roles[name].turn()
    roles["rate"].time_limit_s = 0.0
    # Each of the eight copies plays an episode in a turn, until both matches are over.
    for _ in range(8):
        assert roles["rate"].turn()["model"] == 3
    assert roles["rate"].turn() is None
    pairs = [(r.a, r.b, num_games(r)) for r in read_records(run)[3:]]
    assert pairs == [("000003", "000000", 8), ("000003", "000002", 8)] * 4
    for name in NAMES:
        roles[name].turn()
    context.stop.set()
    assert roles["rate"].turn() == {"model": 4, "stopped": True}
    assert len(read_records(run)) == 3 + 8
    for role in roles.values():
        role.close()


def test_models_depend_on_turns_and_not_on_the_clock(duel):
    config, run = duel
    context = RoleContext(saves=False)
    roles = {name: make_role(name, config, run, context) for name in NAMES}
    roles["learn"].save_s = 0.0
    found = []
    for _ in range(31):
        for name in NAMES:
            roles[name].turn()
        found.append(run.models.latest())
    # The first turn publishes the untrained network.
    assert found == [0] * 10 + [1] * 10 + [2] * 10 + [3]
    roles["actor"].close()
    (kept,) = json.loads((run.actors / "behaviour-0.json").read_text())["copies"]
    assert [number for number, _ in kept] == [0, 1, 2]
    for role in roles.values():
        role.close()


def test_an_actor_without_the_run_directory_has_no_opponents(duel):
    config, run = duel
    context = RoleContext(mirror=object())
    with refused(UsageError, "agent.actor.opponents (0.5)"):
        make_role("actor", config, run, context)
