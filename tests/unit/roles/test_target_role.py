"""Role eval: what its processes share, and what a kill leaves for the next one."""

from __future__ import annotations

import dataclasses
import json
import shutil
import threading
from types import SimpleNamespace

import pytest

from tengen.errors import UsageError
from tengen.evaluation import TargetConfig
from tengen.recipes import make_config
from tengen.roles import clock, target, write_config
from tengen.roles.clock import begin_clock, note_call
from tengen.roles.role import RoleContext
from tengen.run import RunDirectory, publish_json

TARGET = TargetConfig(
    opponent="mcts:2",
    num_games=12,
    chunk_games=4,
    num_simulations=8,
    confirming_games=8,
    win_rate=0.5,
)


@pytest.fixture
def run(tmp_path, monkeypatch, hash_player):
    """A run of connect4 with five models without files."""
    made = RunDirectory.create_or_resume(tmp_path / "run")
    for number in range(5):
        made.models.publish(number, lambda folder: None)

    def player(role, number):
        return hash_player("connect4", f"{number:06d}", salt=number)

    def meta(path, error):
        number = int(path.name)
        return SimpleNamespace(
            generation=number, made_at=100.0 + number, num_steps=number, origin=None
        )

    monkeypatch.setattr(target.EvalRole, "_player", player)
    monkeypatch.setattr(target, "read_meta", meta)
    monkeypatch.setattr(clock, "read_meta", meta)
    note_call(made)
    begin_clock(made)
    return made


def make_role(run, config=TARGET, stop=None):
    whole = make_config("connect4", None, None)
    agent = dataclasses.replace(whole.agent, target=config)
    whole = dataclasses.replace(whole, agent=agent)
    write_config(run, whole)
    return target.EvalRole(whole, run, RoleContext(stop=stop or threading.Event()))


def finish(run, config=TARGET):
    """Takes turns to the end; returns the reports."""
    role = make_role(run, config)
    reports = []
    while (report := role.turn()) is not None:
        reports.append(report)
    return reports


def kept(run):
    """Returns the results without their times, and the games."""
    found = {}
    for path in sorted((run.eval / "target").glob("*.json")):
        if path.name in ("calls.json", "began.json"):
            continue
        content = json.loads(path.read_text())
        found[path.name] = {
            name: value
            for name, value in content.items()
            if not name.endswith(("_at", "_s"))
        }
    for path in sorted(run.games.glob("target*/*/*")):
        found[str(path.relative_to(run.games))] = path.read_bytes()
    return found


def test_a_run_without_a_target_has_no_such_role(run):
    with pytest.raises(UsageError, match=r"agent.target.opponent \(empty\)"):
        make_role(run, TargetConfig())


def test_the_first_model_that_passes_is_the_result(run):
    reports = finish(run)
    result = json.loads((run.eval / "target" / "result.json").read_text())
    records = kept(run)
    rates = {
        number: records[f"{number:06d}.json"]["win_rate"]
        for number in range(1, 5)
        if f"{number:06d}.json" in records
    }
    passed = [number for number, rate in rates.items() if rate >= TARGET.win_rate]
    assert result["passed"] == (passed[0] if passed else None)
    # None behind the one that passed, and none left out before it.
    last = passed[0] if passed else 4
    assert sorted(rates) == list(range(1, last + 1))
    assert passed, "the seed and the salts must make one of them pass"
    assert f"{last:06d}-confirm.json" in records
    assert result["confirmation"]["num_games"] == 8
    began = json.loads((run.eval / "target" / "began.json").read_text())["clock_at"]
    assert result["passed_after_s"] == round(100.0 + last - began, 3)
    told = json.loads((run.eval / "target" / "clock.json").read_text())
    assert (told["init_ended_at"], told["clock_at"]) == (100.0, began)
    lines = (run.eval / "target" / "generations.jsonl").read_text().splitlines()
    assert [json.loads(line)["model"] for line in lines] == [1, 2, 3, 4]
    assert reports[-1]["is_result"]
    # Colours alternate over the parts.
    lines = (run.games / "target" / "000001" / "games.jsonl").read_text().splitlines()
    firsts = [json.loads(line)["a_moves_first"] for line in lines]
    assert firsts == [True, False] * 6
    assert [json.loads(line)["index"] for line in lines] == list(range(12))
    assert not list((run.eval / "target").glob("*/*.jsonl"))
    assert finish(run) == []


def test_several_processes_come_to_the_same(run, tmp_path):
    finish(run)
    wanted = kept(run)
    shutil.rmtree(run.games / "target")
    shutil.rmtree(run.games / "target-confirm")
    for path in (run.eval / "target").glob("[0-9rcg]*"):
        path.unlink()
    roles = [make_role(run) for _ in range(3)]
    played = [0] * 3

    def work(index):
        while (report := roles[index].turn()) is not None:
            played[index] += report.get("num_games", 0)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = kept(run)
    # One may have played a model ahead that was not needed.
    assert {name: found[name] for name in wanted} == wanted


def killed_after_a_part(run):
    make_role(run).turn()


def killed_before_the_record(run):
    role = make_role(run)
    for _ in range(3):
        role.turn()


def killed_with_the_games_kept(run):
    killed_before_the_record(run)
    make_role(run).turn()
    (run.eval / "target" / "000001.json").unlink()
    # Its parts are gone by now: they are played again.


def killed_with_the_parts_left(run):
    killed_before_the_record(run)
    parts = run.eval / "target" / "000001"
    copy = run.path / "copy"
    shutil.copytree(parts, copy)
    make_role(run).turn()
    shutil.copytree(copy, parts)


@pytest.mark.parametrize(
    "killed",
    [
        killed_after_a_part,
        killed_before_the_record,
        killed_with_the_games_kept,
        killed_with_the_parts_left,
    ],
)
def test_what_a_kill_left_is_gone_on_with(run, killed):
    finish(run)
    wanted = kept(run)
    for folder in ("target", "target-confirm"):
        shutil.rmtree(run.games / folder)
    began = (run.eval / "target" / "began.json").read_bytes()
    shutil.rmtree(run.eval / "target")
    (run.eval / "target").mkdir()
    (run.eval / "target" / "began.json").write_bytes(began)
    killed(run)
    finish(run)
    assert kept(run) == wanted


def test_a_stop_ends_a_part_without_keeping_it(run):
    stop = threading.Event()
    stop.set()
    report = make_role(run, stop=stop).turn()
    assert report["stopped"]
    assert not list((run.eval / "target").glob("*/*.jsonl"))


def test_the_clock_begins_once(run):
    path = run.eval / "target" / "began.json"
    before = path.read_bytes()
    begin_clock(run)
    assert path.read_bytes() == before
    publish_json(path, {"schema": 2})
    with pytest.raises(UsageError, match="newer"):
        target.read_clock(run)
