"""The gate's matches: what a turn says and leaves, also where it was stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import threading
from types import SimpleNamespace

import pytest

from tengen.config import from_dict
from tengen.errors import UsageError
from tengen.evaluation import AcceptAllGate, MatchGate, PlayedGame, SprtGate
from tengen.evaluation.match import MAX_SEED
from tengen.recipes import make_config
from tengen.roles import RoleContext, RunConfig, write_config
from tengen.roles.judging import gate
from tengen.run import RunDirectory, move_directory
from tengen.search import SearchConfig

SPRT = SprtGate(elo0=-10, elo1=150, max_games=100, num_simulations=4)


HASHES: dict[str, str] = {}


def publish(run, *numbers):
    for number in numbers:
        run.candidates.publish(number, lambda folder: None)


def places(run):
    """Returns the numbers of candidates, models and rejected ones."""
    folders = (run.candidates, run.models, run.rejected)
    return tuple(folder.numbers() for folder in folders)


@pytest.fixture
def replace(monkeypatch):
    """Returns a context in which names of the role's module, or of a class, differ."""

    @contextlib.contextmanager
    def put(where=gate, **names):
        with monkeypatch.context() as patch:
            for name, value in names.items():
                patch.setattr(where, name, value)
            yield

    return put


@pytest.fixture
def run(tmp_path, replace, hash_player):
    """A run of two models without files, of which one is a candidate."""
    made = RunDirectory.create_or_resume(tmp_path / "run")
    made.models.publish(0, lambda folder: None)
    publish(made, 1)

    def player(role, folder, number):
        return hash_player("connect4", f"{number:06d}", salt=number)

    def accept(run, number):
        move_directory(run.candidates.entry(number), run.models.entry(number))

    def hashes(role, folder, number):
        return HASHES if number == 1 else {}

    with replace(gate.GateRole, _player=player, _sha256=hashes), replace(accept=accept):
        yield made


def make_role(run, gate_config, *, num_threads=1, told=None, seed=3, stop=None):
    config = make_config("connect4", None, None)
    agent = dataclasses.replace(config.agent, gate=gate_config)
    config = dataclasses.replace(config, agent=agent, seed=seed)
    write_config(run, config)
    told = [] if told is None else told
    stop = stop or threading.Event()
    context = RoleContext(num_threads=num_threads, progress=told.append, stop=stop)
    return gate.GateRole(config, run, context)


def take_turn(run, gate_config, **settings):
    role = make_role(run, gate_config, **settings)
    try:
        return role.turn()
    finally:
        role.close()


def kept_games(run, number):
    lines = (run.games / "gate" / f"{number:06d}" / "games.jsonl").read_text()
    return [from_dict(PlayedGame, json.loads(line)) for line in lines.splitlines()]


def test_players_of_the_gate_search_as_those_of_a_match_do(tmp_path, replace):
    """As the run says for play, whatever the search of self-play is."""
    model = SimpleNamespace(path=tmp_path)
    agent = make_config("connect4", None, None).agent
    assert agent.actor.search != SearchConfig()
    run = RunDirectory.create_or_resume(tmp_path / "run")
    loads = {"load_model": lambda *_: model}
    with replace(RunConfig, **loads), replace(open_backend=lambda *_, **__: model):
        role = make_role(run, SPRT)
        assert role._player(run.candidates, 1).play == agent.play
        role.close()


def test_a_match_after_the_greatest_seed_has_a_seed(run):
    for seed, expected in ((7, 10), (MAX_SEED, 2)):
        role = make_role(run, SPRT, seed=seed)
        assert role._seed(3) == expected
        role.close()


@pytest.mark.parametrize("gate_config", [SPRT, MatchGate(num_games=9)])
def test_a_turn_reports_its_match_and_keeps_its_games(run, gate_config):
    told = []
    report = take_turn(run, gate_config, told=told)
    assert (report["candidate"], report["champion"]) == (1, 0)
    assert report["num_recovered"] == 0
    played = kept_games(run, 1)
    scores = [game.score_a for game in played]
    assert report["match"] == [scores.count(score) for score in (1.0, 0.5, 0.0)]
    assert sum(report["pairs"]) == len(played) // 2
    assert ("llr" in report) == isinstance(gate_config, SprtGate)
    folders = run.models if report["accepted"] else run.rejected
    assert 1 in folders.numbers()
    assert not list(run.eval.iterdir())
    json.dumps(report)
    # The view is told all the time, others now and then.
    assert all(one["stage"].startswith("gate, ") for one in told)
    events = [one["gate"] for one in told if "gate" in one]
    assert [event["candidate"] for event in events] == [1]
    assert "summary" in events[0]


def test_only_the_newest_matches_are_kept(run):
    kept_one = dataclasses.replace(SPRT, matches_kept=1)
    assert take_turn(run, kept_one)["candidate"] == 1
    publish(run, 2)
    assert take_turn(run, kept_one)["candidate"] == 2
    assert [path.name for path in (run.games / "gate").iterdir()] == ["000002"]


def test_no_games_may_be_kept(run):
    take_turn(run, dataclasses.replace(SPRT, matches_kept=0))
    assert not list(run.games.iterdir())


class Killed(Exception):
    pass


@pytest.fixture
def killed_with(run, replace):
    """Takes a turn that dies in a function."""

    def take(where, gate_config, settings=None, error=Killed, **functions):
        with replace(where, **functions), pytest.raises(error):
            take_turn(run, gate_config, **(settings or {}))

    return take


@pytest.fixture
def die(killed_with):
    """Takes a turn that dies once games were kept; returns the games."""

    def take(gate_config, **settings):
        kept = []
        keep = gate.MatchJournal.keep

        def keep_and_die(journal, games):
            keep(journal, games)
            kept.extend(games)
            raise Killed

        killed_with(gate.MatchJournal, gate_config, settings, keep=keep_and_die)
        return kept

    return take


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_match_goes_on_where_a_kill_ended_it(
    run, tmp_path, replace, die, num_threads
):
    other = RunDirectory.create_or_resume(tmp_path / "other")
    other.models.publish(0, lambda folder: None)
    publish(other, 1)
    whole = take_turn(other, SPRT)
    before = die(SPRT, num_threads=num_threads)
    assert before
    keep, again = gate.MatchJournal.keep, []

    def keep_and_note(journal, games):
        keep(journal, games)
        again.extend(games)

    with replace(gate.MatchJournal, keep=keep_and_note):
        resumed = take_turn(run, SPRT, num_threads=num_threads)
    assert resumed["num_recovered"] == len(before)
    assert not {g.index for g in again} & {g.index for g in before}
    assert {**resumed, "num_recovered": 0} == whole
    assert kept_games(run, 1) == kept_games(other, 1)
    assert not (run.eval / "gate-000001").exists()


@pytest.mark.parametrize(
    ("changed", "is_recovered"),
    [
        ({"elo1": 200.0}, True),  # the games are the same ones
        ({"max_games": 10}, True),
        ({"matches_kept": 1}, True),
        ({"num_simulations": 5}, False),
        ({"opening_plies": 3}, False),
    ],
)
def test_a_changed_gate_goes_on_where_the_games_are_the_same(
    run, die, changed, is_recovered
):
    num_games = len(die(SPRT))
    changed_gate = dataclasses.replace(SPRT, **changed)
    report = take_turn(run, changed_gate)
    assert report["num_recovered"] == (num_games if is_recovered else 0)
    assert len(kept_games(run, 1)) <= changed_gate.max_games


def test_a_stop_leaves_the_candidate_and_its_games(run):
    stop = threading.Event()
    stop.set()
    report = take_turn(run, SPRT, stop=stop)
    assert report["stopped"]
    assert "accepted" not in report
    assert run.candidates.numbers() == [1]
    assert (run.eval / "gate-000001").exists()


def test_what_a_kill_left_of_decided_matches_is_removed(run):
    for name in ("gate-000000", "gate-000001", "gate-000009"):
        (run.eval / name).mkdir()
        (run.eval / name / "1.journal").touch()
    make_role(run, SPRT).close()
    assert [path.name for path in run.eval.iterdir()] == ["gate-000001"]


@pytest.mark.parametrize("gate_config", [SPRT, MatchGate(num_games=4)])
def test_the_newest_candidate_is_judged_and_older_ones_are_passed_over(
    run, gate_config
):
    publish(run, 2, 3)
    report = take_turn(run, gate_config)
    assert (report["candidate"], report["passed_over"]) == (3, "000001, 000002")
    assert places(run) == (
        ([], [0, 3], [1, 2]) if report["accepted"] else ([], [0], [1, 2, 3])
    )
    assert [path.name for path in (run.games / "gate").iterdir()] == ["000003"]
    publish(run, 4)
    assert "passed_over" not in take_turn(run, gate_config)


def test_a_run_without_a_model_takes_the_newest(run):
    move_directory(run.models.entry(0), run.candidates.entry(0))
    assert take_turn(run, SPRT)["passed_over"] == "000000"
    assert places(run) == ([], [1], [0])


def test_where_all_pass_none_is_passed_over(run):
    publish(run, 2)
    for number in (1, 2):
        report = take_turn(run, AcceptAllGate())
        assert report == {"candidate": number, "accepted": True}
    assert places(run) == ([], [0, 1, 2], [])


def test_a_match_that_has_begun_is_decided_before_newer_candidates(run, die):
    num_games = len(die(SPRT))
    publish(run, 2, 3)
    report = take_turn(run, SPRT)
    assert (report["candidate"], report["num_recovered"]) == (1, num_games)
    assert run.candidates.numbers() == [2, 3]
    assert take_turn(run, SPRT)["candidate"] == 3


def test_a_kill_while_others_are_passed_over_leaves_the_same_verdict(run, killed_with):
    publish(run, 2, 3)
    moved = []
    reject = gate.reject

    def reject_one(run, number):
        if moved:
            raise Killed
        moved.append(number)
        reject(run, number)

    killed_with(gate, SPRT, reject=reject_one)
    assert places(run) == ([2, 3], [0], [1])
    publish(run, 4)
    report = take_turn(run, SPRT)
    assert (report["candidate"], report["passed_over"]) == (3, "000002")
    assert report["num_recovered"] >= len(kept_games(run, 3))
    assert run.candidates.numbers() == [4]


def test_a_candidate_that_cannot_be_opened_begins_no_match(run, killed_with):
    def refuse(role, folder, number):
        raise UsageError("damaged")

    killed_with(gate.GateRole, SPRT, error=UsageError, _player=refuse)
    publish(run, 2)
    assert take_turn(run, SPRT)["candidate"] == 2


def test_passed_over_candidates_do_not_pile_up(run):
    publish(run, *range(2, 31))
    lenient = MatchGate(num_games=2, min_score=1e-10)
    assert take_turn(run, lenient)["accepted"]
    assert run.rejected.numbers() == list(range(10, 30))


def test_games_of_other_weights_do_not_count(run, die, monkeypatch):
    """A candidate's number comes again where it was taken out by hand."""
    assert die(SPRT)
    monkeypatch.setitem(HASHES, "weights.safetensors", "other")
    assert take_turn(run, SPRT)["num_recovered"] == 0


def test_games_that_were_published_before_a_kill_stay(run, killed_with):
    def fail(run, number):
        raise Killed

    killed_with(gate, SPRT, accept=fail, reject=fail)
    before = kept_games(run, 1)
    report = take_turn(run, SPRT)
    # Decided by the games that are there: none is played.
    assert report["num_recovered"] >= len(before)
    assert kept_games(run, 1) == before
