"""Matches with a target: what processes share, and what a kill leaves behind."""

from __future__ import annotations

import dataclasses
import json
import shutil
import threading
from types import SimpleNamespace

import pytest

from tengen.errors import RunError, UsageError
from tengen.evaluation import MatchStopped, TargetConfig, play_match
from tengen.evaluation.targets import terms
from tengen.inference import InferenceConfig
from tengen.recipes import make_config
from tengen.roles import RoleContext, clock, write_config
from tengen.roles.clock import begin_clock, note_call
from tengen.roles.judging import gate, target
from tengen.run import RunDirectory, publish_json
from tests.refusals import refused

TARGET = TargetConfig(
    opponent="mcts:2",
    num_games=12,
    chunk_games=4,
    num_simulations=8,
    confirming_games=8,
    win_rate=0.5,
)


@pytest.fixture
def replace(monkeypatch):
    """Replaces names of the role's module."""

    def put(where=target, **names):
        for name, value in names.items():
            monkeypatch.setattr(where, name, value)

    return put


@pytest.fixture
def modelless(tmp_path, replace):
    """A run of connect4 with five models without files."""
    made = RunDirectory.create_or_resume(tmp_path / "run")
    for number in range(5):
        made.models.publish(number, lambda folder: None)

    def meta(path, error):
        number = int(path.name)
        return SimpleNamespace(
            generation=number, made_at=100.0 + number, num_steps=number, origin=None
        )

    replace(read_meta=meta)
    replace(clock, read_meta=meta)
    note_call(made, {})
    begin_clock(made)
    return made


@pytest.fixture
def run(modelless, replace, hash_player):
    """The same, whose models play by hashes."""

    def player(role, number):
        return hash_player("connect4", f"{number:06d}", salt=number)

    replace(target.TargetMatches, _player=player)
    return modelless


def make_role(
    run, config=TARGET, stop=None, iterations=4, opponent=None, inference=None, **given
):
    whole = make_config("connect4", None, None)
    agent = dataclasses.replace(whole.agent, target=config, iterations=iterations)
    inference = inference or whole.inference
    whole = dataclasses.replace(whole, agent=agent, inference=inference)
    write_config(run, whole)
    stop = stop or threading.Event()
    context = RoleContext(stop=stop, opponent=opponent, **given)
    return target.TargetMatches(whole, run, context)


def finish(run, config=TARGET, iterations=4):
    """Takes turns to the end; returns the reports."""
    role = make_role(run, config, iterations=iterations)
    reports = []
    while (report := role.turn()) is not None:
        reports.append(report)
    return reports


def kept(run):
    """Returns the results without their times, and the games."""
    found = {}
    for path in sorted((run.eval / "target").glob("*.json")):
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
    with refused(UsageError, "agent.target.opponent (empty)"):
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
    began = json.loads((run.eval / "began.json").read_text())["clock_at"]
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
    shutil.rmtree(run.eval / "target")
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
    path = run.eval / "began.json"
    before = path.read_bytes()
    begin_clock(run)
    assert path.read_bytes() == before
    publish_json(path, {"schema": 2})
    with refused(UsageError, "newer"):
        target.read_clock(run)


def test_calls_that_made_no_model_are_no_part_of_the_initialisation(run):
    # The first model is of second 100, and the clock begins later.
    calls = [{"at": at, "open_because": []} for at in (10.0, 60.0, 90.0, 101.5, 102.5)]
    publish_json(run.eval / "calls.json", {"schema": 1, "calls": calls})
    target.TargetFiles(run).make()
    clock.publish_history(run)
    told = json.loads((run.eval / "target" / "clock.json").read_text())
    assert (told["init_at"], told["init_ended_at"]) == (90.0, 100.0)
    assert told["restarts_at"] == [101.5, 102.5]


def result_of(run):
    return json.loads((run.eval / "target" / "result.json").read_text())


def test_there_is_no_result_before_all_models_are_made(run):
    nobody = dataclasses.replace(TARGET, win_rate=1.0)
    role = make_role(run, nobody, iterations=6)
    while role.turn() is not None:
        pass
    assert "models (4) must be agent.iterations (6)" in role.waits_for
    names = {path.name for path in (run.eval / "target").glob("*.json")}
    assert names == {"terms.json", *(f"{number:06d}.json" for number in range(1, 5))}
    for number in (5, 6):
        run.models.publish(number, lambda folder: None)
    finish(run, nobody, iterations=6)
    assert result_of(run)["num_models"] == 6


def test_a_result_is_made_anew_for_more_models(run):
    nobody = dataclasses.replace(TARGET, win_rate=1.0)
    finish(run, nobody)
    assert (result_of(run)["passed"], result_of(run)["num_models"]) == (None, 4)
    run.models.publish(5, lambda folder: None)
    finish(run, nobody, iterations=5)
    assert result_of(run)["num_models"] == 5
    lines = (run.eval / "target" / "generations.jsonl").read_text().splitlines()
    assert [json.loads(line)["model"] for line in lines] == [1, 2, 3, 4, 5]
    assert [json.loads(line)["num_steps"] for line in lines] == [1] * 5


def test_the_games_of_another_target_take_the_place_of_all(run):
    finish(run)
    before = {path.parent.name: path for path in run.games.glob("target/*/*")}
    first = before["000001"].read_bytes()
    shutil.rmtree(run.eval / "target")
    # So low that the first model passes, and is the only one that is played.
    finish(run, dataclasses.replace(TARGET, opponent="mcts:5", win_rate=0.01))
    told = {path.parent.name for path in run.games.glob("target/*/*")}
    assert told == {"000001"} < set(before)
    assert before["000001"].read_bytes() != first
    confirmed = run.games.glob("target-confirm/*/*")
    assert {path.parent.name for path in confirmed} == {"000001"}


@pytest.mark.parametrize(
    ("devices", "asked"),
    [
        ("cpu", {"num_threads": 6, "num_slots": None, "devices": None}),
        # Both players on the GPUs, in few and large batches.
        ("cuda:1", {"num_threads": 2, "num_slots": 256, "devices": "cuda:1"}),
        (
            "cuda:0,cuda:1",
            {"num_threads": 4, "num_slots": 256, "devices": "cuda:0,cuda:1"},
        ),
    ],
)
def test_a_gpu_gets_large_batches(modelless, replace, devices, asked):
    found = {}

    def backend(path, inference, num_threads, outputs):
        found.update(model_threads=num_threads, model_devices=inference.devices)

    def opened(config, task, play, num_threads, devices):
        found.update(opponent_threads=num_threads, devices=devices)

    def played(game, a, b, *, num_threads, num_slots, **others):
        found.update(num_threads=num_threads, num_slots=num_slots)
        raise MatchStopped

    replace(
        gate,
        load_model=lambda path, *words, **others: SimpleNamespace(path=path),
        open_backend=backend,
        ModelPlayer=lambda *words: None,
    )
    replace(
        is_network=lambda word: True,
        open_opponent=opened,
        play_match=played,
    )
    inference = InferenceConfig(
        devices=devices, backend="torch", precision="fp32", batch_shape="dynamic"
    )
    role = make_role(modelless, inference=inference, num_threads=6)
    assert role.turn() == {"model": 1, "stopped": True}
    assert found == {
        **asked,
        "opponent_threads": asked["num_threads"],
        "model_threads": asked["num_threads"],
        "model_devices": asked["devices"] or "cpu",
    }
    # A target that computes on processors keeps their threads.
    replace(is_network=lambda word: False)
    role = make_role(modelless, inference=inference, num_threads=6)
    assert role.turn() == {"model": 1, "stopped": True}
    assert (found["num_threads"], found["num_slots"]) == (6, None)
    assert found["devices"] is None


def test_a_part_that_a_result_overtook_is_dropped(run, replace):
    role = make_role(run)

    def gone(*words):
        raise RunError("the folder is gone")

    def overtaken(files, *words):
        files.publish_result({"iterations": 4})
        gone()

    replace(target.TargetFiles, publish_games=gone)
    with refused(RunError, "the folder is gone"):
        role.turn()
    replace(target.TargetFiles, publish_games=overtaken)
    assert (role.turn() or {})["part"] == 0
    assert role.turn() is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("opponent", "random"),
        ("num_games", 20),
        ("chunk_games", 12),
        ("num_simulations", 9),
        ("opening_plies", 1),
        ("win_rate", 0.25),
        ("confirming_games", 4),
    ],
)
def test_games_of_two_kinds_make_no_record(run, name, value):
    make_role(run).turn()
    with refused(UsageError, f"agent.target.{name} ({value})"):
        make_role(run, dataclasses.replace(TARGET, **{name: value}))


def test_an_opponent_that_was_replaced_makes_no_record(run, replace):
    role = make_role(run)
    role.turn()
    replace(terms, opponent_digest=lambda config: "another")
    with refused(UsageError, "agent.target.opponent"):
        make_role(run)
    # Nor where it is replaced while a process plays.
    with refused(UsageError, "agent.target.opponent"):
        list(iter(role.turn, None))
    assert not (run.eval / "target" / "000001.json").exists()


def test_a_program_that_was_not_typed_is_not_started(run, tmp_path, replace):
    mark = tmp_path / "mark"
    evil = dataclasses.replace(TARGET, opponent=f"gomocup:touch {mark}")
    for typed, why in ((None, "runs only where it is typed"), ("mcts:2", "must be")):
        role = make_role(run, evil, opponent=typed)
        with refused(UsageError, "gomocup:touch", why):
            role.turn()
        assert not mark.exists()
    started = []
    replace(
        open_opponent=lambda *words, **_: started.append(words),
        play_match=lambda *words, **settings: 1 / 0,
    )
    role = make_role(run, evil, opponent=evil.opponent)
    with pytest.raises(ZeroDivisionError):
        role.turn()
    assert len(started) == 1


def test_games_that_many_dispute_are_no_match(run, replace):
    def disputed(*words, **settings):
        report = play_match(*words, **settings)
        first = dataclasses.replace(report.games[0], score_a=None)
        return dataclasses.replace(report, games=[first, *report.games[1:]])

    replace(play_match=disputed)
    with refused(RunError, "3 disputed of 12"):
        finish(run)


def test_a_target_that_loses_by_illegal_moves_is_none(run, replace):
    # One of each part, so that three of twelve games are of this kind; then one.
    for parts, is_refused in (([0, 1, 2], True), ([1], False)):
        num_played = iter(range(100))

        def illegal(*words, parts=parts, num_played=num_played, **settings):
            report = play_match(*words, **settings)
            if next(num_played) not in parts:
                return report
            first = dataclasses.replace(report.games[0], illegal="move 3, Z9")
            return dataclasses.replace(report, games=[first, *report.games[1:]])

        replace(play_match=illegal)
        if is_refused:
            with refused(RunError, "games (3 of 12 of model"):
                finish(run)
            assert not (run.eval / "target" / "000001.json").exists()
            shutil.rmtree(run.eval / "target" / "000001")
        else:
            finish(run)
            record = json.loads((run.eval / "target" / "000001.json").read_text())
            assert record["illegal"] == 1


def test_a_run_is_open_by_what_any_call_had(run):
    note_call(run, {"agent": {"target": {"opponent": "random"}}})
    told = clock.run_open_because(run)
    assert "agent.actor.full_simulations (None) is 800 in the closed division" in told
    assert not any(reason.startswith("agent.target.") for reason in told)
    # Roles by themselves train by what a call only wrote; that call is no restart.
    note_call(run, {"store": {"share": 0.9}}, trains=False)
    told = clock.run_open_because(run)
    assert "store.share (0.9) is 0.3 in the closed division" in told
    (run.eval / "began.json").unlink()
    assert "the time was not recorded" in clock.run_open_because(run)[-1]
    finish(run)
    result = result_of(run)
    assert (result["clock_at"], result["passed_after_s"]) == (None, None)
    assert "the time was not recorded" in result["open_because"][-1]
    kept_clock = json.loads((run.eval / "target" / "clock.json").read_text())
    # Of three calls the first began the run, and the last only wrote the config.
    assert len(kept_clock["restarts_at"]) == 1
