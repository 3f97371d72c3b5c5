"""Matches with a target: sharing between processes, and recovery after a kill."""

import dataclasses
import json
import shutil
import threading

import pytest

from tengen.config import to_dict
from tengen.errors import RunError, UsageError
from tengen.evaluation import ModelPlayer, TargetConfig
from tengen.games import open_game
from tengen.inference import InferenceConfig
from tengen.minigo import history
from tengen.minigo.history import note_call
from tengen.minigo.matches import Room, TargetMatches, room_for
from tengen.minigo.target_files import TargetFiles
from tengen.models import ModelMeta
from tengen.nets import board_of, parse_net
from tengen.observe.target import TargetResult
from tengen.recipes import make_config
from tengen.roles import RoleContext, write_config
from tengen.roles.spent import read_began, record_began
from tengen.run import RunDirectory, publish_json
from tests.refusals import refused
from tests.unit.conftest import HashBackend

TARGET = TargetConfig(
    opponent="mcts:2",
    num_games=12,
    chunk_games=4,
    num_simulations=8,
    confirming_games=8,
    win_rate=0.5,
)


def meta(number):
    """Returns the metadata of a model created at second 100 + ``number``."""
    net = parse_net("2x8")
    return ModelMeta(
        task="connect4",
        agent="alphazero",
        net=net,
        signature=net.signature(board_of(open_game("connect4")).signature),
        generation=number,
        num_steps=number,
        num_samples=0,
        made_at=100.0 + number,
        sha256={},
    )


def publish_model(run, number):
    text = json.dumps(to_dict(meta(number)))
    run.models.publish(number, lambda path: (path / "meta.json").write_text(text))


@pytest.fixture
def run(tmp_path):
    """A run of connect4 with five models without weights."""
    made = RunDirectory.create_or_resume(tmp_path / "run")
    for number in range(5):
        publish_model(made, number)
    note_call(made, {})
    publish_json(made.eval / "began.json", {"schema": 1, "clock_at": 100.5})
    return made


class Matches(TargetMatches):
    """Matches that play hash networks in place of the run's models.

    Attributes:
        change: Maps a part's report and number to the report to use.
    """

    change = None

    def open_model(self, number):
        backend = HashBackend(number)
        return ModelPlayer(name=f"{number:06d}", task="connect4", backend=backend)

    def play(self, match, chunk, num_games):
        report = super().play(match, chunk, num_games)
        return report if self.change is None else self.change(report, chunk)


def with_first(report, **changes):
    """Returns a report whose first game has other fields."""
    first = dataclasses.replace(report.games[0], **changes)
    return dataclasses.replace(report, games=[first, *report.games[1:]])


def make_role(run, config=TARGET, stop=None, iterations=4, opponent=None):
    whole = make_config("connect4", None, None)
    agent = dataclasses.replace(whole.agent, target=config, iterations=iterations)
    whole = dataclasses.replace(whole, agent=agent)
    write_config(run, whole)
    context = RoleContext(stop=stop or threading.Event(), opponent=opponent)
    return Matches(whole, run, context)


def finish(run, config=TARGET, iterations=4, change=None):
    """Takes turns until the role has finished; returns the reports."""
    role = make_role(run, config, iterations=iterations)
    role.change = change
    reports = []
    while (report := role.turn()) is not None:
        reports.append(report)
    return reports


def kept(run):
    """Returns the results without times, and the games."""
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
    # Every model up to the first that passes has a record, and no later model has.
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
    # Colours also alternate across the parts of a match.
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
    # Another process may have played a later model, which was not needed.
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
    # Writing the record deleted the parts, so they are played again.


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
    record_began(run)
    assert path.read_bytes() == before
    publish_json(path, {"schema": 2})
    with refused(UsageError, "schema (2)"):
        read_began(run)


def test_calls_that_made_no_model_are_no_part_of_the_initialisation(run):
    # The first model was created at second 100, before the clock started.
    calls = [{"at": at, "open_because": []} for at in (10.0, 60.0, 90.0, 101.5, 102.5)]
    publish_json(run.eval / "calls.json", {"schema": 1, "calls": calls})
    TargetFiles(run).make()
    history.publish_history(run)
    told = json.loads((run.eval / "target" / "clock.json").read_text())
    assert (told["init_at"], told["init_ended_at"]) == (90.0, 100.0)
    assert told["restarts_at"] == [101.5, 102.5]


def result_of(run):
    return json.loads((run.eval / "target" / "result.json").read_text())


def test_there_is_no_result_before_all_models_are_made(run):
    nobody = dataclasses.replace(TARGET, opponent="mcts:300", win_rate=1.0)
    role = make_role(run, nobody, iterations=6)
    while role.turn() is not None:
        pass
    assert "models (4) must be agent.iterations (6)" in role.waits_for
    names = {path.name for path in (run.eval / "target").glob("*.json")}
    assert names == {"terms.json", *(f"{number:06d}.json" for number in range(1, 5))}
    for number in (5, 6):
        publish_model(run, number)
    finish(run, nobody, iterations=6)
    assert result_of(run)["num_models"] == 6


def test_a_result_is_made_anew_for_more_models(run):
    nobody = dataclasses.replace(TARGET, opponent="mcts:300", win_rate=1.0)
    finish(run, nobody)
    assert (result_of(run)["passed"], result_of(run)["num_models"]) == (None, 4)
    publish_model(run, 5)
    finish(run, nobody, iterations=5)
    assert result_of(run)["num_models"] == 5
    lines = (run.eval / "target" / "generations.jsonl").read_text().splitlines()
    assert [json.loads(line)["model"] for line in lines] == [1, 2, 3, 4, 5]
    assert [json.loads(line)["num_steps"] for line in lines] == [1] * 5


def test_the_games_of_another_target_take_the_place_of_all(run):
    finish(run, dataclasses.replace(TARGET, opponent="mcts:300"))
    before = {path.parent.name: path for path in run.games.glob("target/*/*")}
    first = before["000001"].read_bytes()
    shutil.rmtree(run.eval / "target")
    # The win rate is so low that only the first model is played, and passes.
    finish(run, dataclasses.replace(TARGET, opponent="mcts:5", win_rate=0.01))
    told = {path.parent.name for path in run.games.glob("target/*/*")}
    assert told == {"000001"} < set(before)
    assert before["000001"].read_bytes() != first
    confirmed = run.games.glob("target-confirm/*/*")
    assert {path.parent.name for path in confirmed} == {"000001"}


@pytest.mark.parametrize(
    ("devices", "word", "room"),
    [
        ("cpu", "bundled:connect4", Room(6)),
        # Both players run on the GPUs, in few large batches.
        ("cuda:1", "bundled:connect4", Room(2, 256, "cuda:1")),
        ("cuda:0,cuda:1", "bundled:connect4", Room(4, 256, "cuda:0,cuda:1")),
        # A target that computes on the CPU needs the threads.
        ("cuda:1", "mcts:2", Room(6)),
    ],
)
def test_a_gpu_gets_large_batches(devices, word, room):
    inference = InferenceConfig(
        devices=devices, backend="torch", precision="fp32", batch_shape="dynamic"
    )
    assert room_for(inference, word, 6) == room


def test_a_part_that_a_result_overtook_is_dropped(run):
    role = make_role(run)
    in_the_way = run.eval / "target" / "000001"

    def cleared(report, chunk):
        in_the_way.touch()
        return report

    role.change = cleared
    with refused(RunError, str(in_the_way)):
        role.turn()
    result = TargetResult(
        win_rate=0.5,
        clock_at=None,
        iterations=4,
        passed=None,
        passed_after_s=None,
        is_closed=True,
    )

    def overtaken(report, chunk):
        TargetFiles(run).publish_result(result)
        return report

    role.change = overtaken
    assert role.turn()["part"] == 0
    in_the_way.unlink()
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
    before = str(getattr(TARGET, name))
    with refused(UsageError, f"agent.target.{name} ({value})", before):
        make_role(run, dataclasses.replace(TARGET, **{name: value}))


def test_games_from_before_a_setting_of_play_existed_still_count(run):
    make_role(run).turn()
    path = run.eval / "target" / "terms.json"
    terms = json.loads(path.read_text())
    del terms["play"]["resign_below"]
    publish_json(path, terms)
    make_role(run).turn()
    terms["play"]["keeps_tree"] = True
    publish_json(path, terms)
    with refused(UsageError, "search (agent.actor.search or agent.play)"):
        make_role(run)


def test_an_opponent_that_was_replaced_makes_no_record(run):
    role = make_role(run)
    role.turn()
    path = run.eval / "target" / "terms.json"
    publish_json(path, {**json.loads(path.read_text()), "digest": "another"})
    # A replacement while a process plays makes no record either.
    for turns in (lambda: make_role(run), lambda: list(iter(role.turn, None))):
        with refused(UsageError, "agent.target.opponent (mcts:2)"):
            turns()
    assert not (run.eval / "target" / "000001.json").exists()


def test_a_program_that_was_not_typed_is_not_started(run, tmp_path):
    mark = tmp_path / "mark"
    evil = dataclasses.replace(TARGET, opponent=f"gomocup:touch {mark}")
    for typed, why in (
        (None, "--opponent"),
        ("mcts:2", "opponent (mcts:2)"),
        (evil.opponent, "connect4"),  # accepted, but gomocup plays no connect4
    ):
        role = make_role(run, evil, opponent=typed)
        with refused(UsageError, why):
            role.turn()
        assert not mark.exists()


def test_games_that_many_dispute_are_no_match(run):
    with refused(RunError, "games (3 disputed of 12 of model 1)"):
        finish(run, change=lambda report, chunk: with_first(report, score_a=None))


@pytest.mark.parametrize(("parts", "is_match"), [((0, 1, 2), False), ((1,), True)])
def test_a_target_that_loses_by_illegal_moves_is_none(run, parts, is_match):
    def illegal(report, chunk):
        changes = {"illegal": "move 3, Z9"} if chunk in parts else {}
        return with_first(report, **changes)

    path = run.eval / "target" / "000001.json"
    if is_match:
        finish(run, change=illegal)
        assert json.loads(path.read_text())["illegal"] == 1
        return
    with refused(RunError, "games (3 of 12 of model 1", "move 3, Z9"):
        finish(run, change=illegal)
    assert not path.exists()


def test_a_run_is_open_by_what_any_call_had(run):
    note_call(run, {"agent": {"target": {"opponent": "random"}}})
    told = history.run_open_because(run)
    assert (
        "agent.actor.full_simulations (None) must be 800 in the closed division" in told
    )
    assert not any(reason.startswith("agent.target.") for reason in told)
    # A call that only writes the config (``trains=False``) is no restart.
    note_call(run, {"store": {"share": 0.9}}, trains=False)
    told = history.run_open_because(run)
    assert "store.share (0.9) must be 0.3 in the closed division" in told
    (run.eval / "began.json").unlink()
    assert "the time was not recorded" in history.run_open_because(run)[-1]
    finish(run)
    result = result_of(run)
    assert (result["clock_at"], result["passed_after_s"]) == (None, None)
    assert "the time was not recorded" in result["open_because"][-1]
    kept_clock = json.loads((run.eval / "target" / "clock.json").read_text())
    # Of three calls, the first began the run and the last only wrote the config.
    assert len(kept_clock["restarts_at"]) == 1
