"""What status tells of roles that run by themselves."""

import os
import socket

import pytest

from tengen.cli import main
from tengen.observe import read_events
from tengen.observe.roles import RoleProcess, ratio
from tengen.observe.status import read_status
from tengen.roles.alone.role_log import RoleLog
from tengen.run import RunDirectory
from tengen.run.lock import WriterLock

HERE = f"{os.getpid()} on {socket.gethostname()}"


@pytest.fixture
def run(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path)
    config = {
        "task": "gomoku/9",
        "store": {"limiter": {"samples_per_row": 4.0}},
        "learner": {"batch_size": 50},
    }
    run.write_run({"config": config})
    return run


def states(run):
    return {role["role"]: role["state"] for role in read_status(run)["roles"]}


def test_nobody_by_itself(run):
    assert read_status(run)["roles"] == []


def test_of_two_processes_of_one_name_the_newest_counts(run):
    """As in containers, where every process is the first."""
    for state in ("the first life", "the second life"):
        RoleLog("learn", run, 1).say(state)
    with run.lock("learn"):
        assert states(run)["learn"] == "the second life"


def test_a_match_of_the_gate_is_what_it_does(run):
    log = RoleLog("gate", run, 1)
    log.busy({"stage": "gate", "gate": {"candidate": 3, "summary": "4 pairs"}})
    with run.lock("gate"):
        assert states(run)["gate"] == "gate, 4 pairs"


def test_each_role_tells_what_it_does(run, capsys):
    logs = {name: RoleLog(name, run, 1) for name in ("selfplay", "learn", "gate")}
    writer = run.experience / "selfplay-3"
    with (
        run.lock("learn"),
        run.lock("gate"),
        WriterLock(writer / "lock", writer),
    ):
        assert states(run) == {
            "selfplay": "starts",
            "learn": "starts",
            "export": f"not running; start tengen export {run.path}",
            "gate": "starts",
        }
        (selfplay,) = [r for r in read_status(run)["roles"] if r["role"] == "selfplay"]
        assert (selfplay["process"], selfplay["writer"]) == (HERE, "selfplay-3")
        logs["selfplay"].busy({"stage": "self-play", "num_games": 7, "seconds": 1.0})
        turn = {"generation": 4, "checkpoint": 2, "num_steps": 5, "total_steps": 20}
        logs["learn"].turn({**turn, "table": {"num_rows": 250}}, 60.0)
        logs["gate"].idle("there is no candidate; run tengen export first")
        assert states(run) == {
            "selfplay": "self-play, 7 games",
            "learn": "at the next turn, after generation 4, wrote checkpoint 2",
            "export": f"not running; start tengen export {run.path}",
            "gate": "waits, there is no candidate; run tengen export first",
        }
        capsys.readouterr()
        assert main(["status", str(run.path)]) == 0
        text = capsys.readouterr().out
        assert "running, 3 standalone roles" in text
        assert f"{HERE}, selfplay-3: self-play, 7 games (0 s ago)" in text
        assert "each row was used 4.0 times (limit 4): learner too slow" in text
    # Nobody holds a lock: whatever they said, they are gone.
    assert set(states(run).values()) == {
        f"not running; start tengen {name} {run.path}"
        for name in ("selfplay", "learn", "export", "gate")
    }
    with run.lock("train"):
        assert read_status(run)["roles"] == []


def test_each_of_several_servers_tells_what_it_does(run):
    config = {"task": "CartPole-v1", "launch": {"roles": {"inference": {"count": 3}}}}
    run.write_run({"config": config, "roles": ["inference"]})
    log = RoleLog("inference", run, 1)
    log.turn(
        {
            "model": 5,
            "num_sessions": 4,
            "num_evaluations": 2400,
            "batch_rows": 7.5,
            "seconds": 2.0,
        },
        1.0,
    )
    missing = f"not running; start tengen inference {run.path} --index"
    with run.lock("inference-2"):
        rows = {one["writer"]: one for one in read_status(run)["roles"]}
    assert {name: one["state"] for name, one in rows.items()} == {
        "server 2": "evaluates 1,200 rows/s for 4 groups, 7.5 per batch, with model 5",
        "server 0": f"{missing} 0",
        "server 1": f"{missing} 1",
    }
    assert rows["server 2"]["process"] == HERE
    assert rows["server 0"]["process"] is None


def test_a_turn_of_the_learner_says_how_far_it_is(run):
    log = RoleLog("learn", run, 1)
    log.busy({"stage": "learning", "num_steps": 320, "of_steps": 2050, "loss": 1.5})
    with run.lock("learn"):
        assert states(run)["learn"] == "learning, 320 of 2,050 steps"


def test_a_role_that_waits_says_so_at_once_then_ever_more_seldom(run, capsys):
    now_s = [100.0]
    log = RoleLog("selfplay", run, 1)
    log.clock = lambda: now_s[0]

    def printed(until_s):
        while now_s[0] < until_s:
            log.idle("no model")
            now_s[0] += 1
        return capsys.readouterr().out.splitlines()

    assert printed(160) == ["selfplay: waits, no model"]
    assert printed(400) == [
        f"selfplay: waits for {s} s, no model" for s in (60, 120, 240)
    ]
    log.turn({"model": 1}, 1.0)
    assert printed(403) == ["selfplay: model 1"]
    assert printed(470) == ["selfplay: waits for 60 s, no model"]
    assert len(printed(100_000)) < 40


def test_what_a_role_lacks_may_change_while_it_waits(run):
    now_s = [100.0]
    log = RoleLog("learn", run, 1)
    log.clock = lambda: now_s[0]
    with run.lock("learn"):
        for num_rows, after_s, told in ((1, 0, 1), (2, 29, 1), (5, 1, 5), (5, 90, 5)):
            now_s[0] += after_s
            log.idle(f"rows ({num_rows})")
            assert states(run)["learn"] == f"waits, rows ({told})"
        assert len(list(read_events(run.events_path("learn-command", 1)))) == 3
        log.turn({"checkpoint": 1}, 1.0)
        log.idle("rows (8)")
        assert states(run)["learn"] == "waits, rows (8)"


CONFIG = {
    "store": {"limiter": {"samples_per_row": 4.0}},
    "learner": {"batch_size": 50},
}
NOW_S = 10_000.0
PLAYED = {"selfplay": 1.0}


def turn(end_s, turn_s, num_steps=10):
    return {
        "kind": "turn",
        "time_s": NOW_S + end_s,
        "turn_s": turn_s,
        "num_steps": num_steps,
        "total_steps": 300,
        "table": {"num_rows": 5000},
    }


def told(events):
    """Returns a learner that has told of events."""
    process = RoleProcess({"kind": "begin", "time_s": events[0]["time_s"]})
    for event in events:
        process.take(event)
    return process


def begin(at_s):
    return {"kind": "begin", "time_s": NOW_S + at_s}


@pytest.mark.parametrize(
    ("events", "share", "words"),
    [
        # 10 s of the last 100.
        ([turn(-90, 10)], "10%", "self-play too slow; start another tengen selfplay"),
        ([turn(-60, 40), turn(0, 30)], "70%", "self-play and learner keep pace"),
        ([turn(-50, 50), turn(0, 48)], "98%", "learner too slow; lower --set store."),
        # The start of a process is not waiting, nor is a turn without steps learning.
        ([begin(-500), turn(-60, 40), turn(0, 30)], "70%", "keep pace"),
        ([turn(-400, 1, num_steps=0), turn(0, 10)], "100%", "learner too slow"),
        # Half of this turn is older than what is looked at.
        ([turn(-900, 9), turn(-300, 600)], "50%", "keep pace"),
        # A turn of an hour that is not over yet.
        ([turn(-3600, 60), {"kind": "busy", "time_s": NOW_S}], "100%", "learner too"),
    ],
)
def test_the_share_of_learning_decides(events, share, words):
    text = ratio(told(events), CONFIG, NOW_S, PLAYED)
    assert text.startswith(
        f"the learner is busy {share} of the time, each row was used 3.0 times "
        "(limit 4): "
    )
    assert words in text


def test_before_the_first_steps_there_is_no_verdict():
    for events in ([begin(-9)], [begin(-9), turn(-1, 1, num_steps=0)]):
        assert ratio(told(events), CONFIG, NOW_S, PLAYED) is None


@pytest.mark.parametrize(
    ("suppliers", "words"),
    [
        ({"selfplay": None}, "nothing arrives without selfplay; start tengen selfplay"),
        ({"selfplay": 1.0, "shuffle": None}, "without shuffle; start tengen shuffle"),
        ({"selfplay": 1.0, "shuffle": 0.9}, "shuffle too slow; give tengen shuffle"),
        ({"selfplay": 1.0, "shuffle": 0.8}, "self-play too slow; start another"),
    ],
)
def test_a_learner_that_waits_blames_who_keeps_it_waiting(suppliers, words):
    text = ratio(told([turn(-90, 10)]), CONFIG, NOW_S, suppliers)
    assert words in text
    busy = ratio(told([turn(-50, 50), turn(0, 48)]), CONFIG, NOW_S, suppliers)
    assert "learner too slow" in busy


@pytest.mark.parametrize(
    ("turn_s", "words"),
    [
        (10, "actors too slow; start a new run with more --actors"),
        (70, "actors and learner keep pace"),
        (98, "learner too slow; give tengen learn more --threads"),
    ],
)
def test_environments_have_actors(turn_s, words):
    events = [turn(-99, 1), turn(0, turn_s)]
    text = ratio(told(events), {"learner": {"batch_size": 50}}, NOW_S, {"actor": 1.0})
    assert words in text
    assert "self-play" not in text
