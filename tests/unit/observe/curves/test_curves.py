"""The table of a run's curve, of events as runs write them."""

import csv
import json
import os
import subprocess
import sys

import pytest

from tengen.cli import main
from tengen.observe import read_events
from tengen.observe.cpu_time import (
    CpuClock,
    process_fields,
    tree_cpu_s,
    tree_memory_bytes,
)
from tengen.observe.curves.table import COLUMNS, read_curve, to_csv
from tengen.roles.alone.role_log import RoleLog
from tests.unit.observe.curves.curve_events import acted, learned, make_run


def put(run, name, *events):
    lines = "".join(json.dumps(event) + "\n" for event in events)
    (run.events / name).write_text(lines)


def progress(time_s, cpu_s):
    return {"time_s": time_s, "kind": "progress", "generation": 1, "cpu_s": cpu_s}


def column(rows, name):
    return [row[name] for row in rows]


def test_a_row_is_a_turn_of_learning(tmp_path):
    run = make_run(tmp_path)
    first = {"time_s": 102.0, "kind": "turn", "role": "learn", "turn_s": 2.0}
    put(
        run,
        "train-1.jsonl",
        {**first, "num_steps": 0, "checkpoint": 0},
        acted(103.0, None, frames_per_step=4),
        learned(105.0, 500, 40),
        acted(106.0, 21.0, mean_length=30.0),
        learned(108.5, 1000, 80, loss=0.25),
    )
    one, two = read_curve(run)
    assert set(one) == set(COLUMNS)
    assert column([one, two], "seconds") == [5.0, 8.5]
    assert column([one, two], "agent_steps") == [500, 1000]
    assert column([one, two], "frames") == [2000, 4000]
    assert column([one, two], "learner_steps") == [40, 80]
    assert column([one, two], "return_mean") == [None, 21.0]
    assert column([one, two], "length_mean") == [None, 30.0]
    assert column([one, two], "loss") == [0.5, 0.25]
    assert column([one, two], "episodes") == [7, 7]
    assert column([one, two], "games") == [None, None]


def test_what_a_kill_undid_is_left_out_and_its_time_is_not(tmp_path):
    run = make_run(tmp_path)
    put(
        run,
        "train-1.jsonl",
        *(learned(102.0 + i, 100 * i, i) for i in (1, 2, 3)),
    )
    put(run, "train-2.jsonl", learned(1002.0, 200, 2), learned(1003.0, 300, 3))
    rows = read_curve(run)
    assert column(rows, "agent_steps") == [100, 200, 300]
    # The first call took 4 s, from the begin of its first turn on.
    assert column(rows, "seconds") == [2.0, 4.0 + 2.0, 4.0 + 3.0]


def test_games_have_ratings_where_they_were_measured(tmp_path):
    run = make_run(tmp_path, roles=("selfplay", "learn"))
    table = {"num_games": 24, "num_rows": 900}
    rated = {"kind": "turn", "role": "rate", "rating": 700.5, "rating_error": 50.0}
    put(
        run,
        "train-1.jsonl",
        learned(102.0, 0, 40, table=table),
        {"time_s": 103.0, **rated},
        learned(104.0, 0, 80, table=table),
    )
    rows = read_curve(run)
    assert column(rows, "rating") == [700.5, None]
    assert column(rows, "rating_error") == [50.0, None]
    assert column(rows, "games") == [24, 24]
    assert column(rows, "agent_steps") == [900, 900]
    assert column(rows, "frames") == [None, None]


def test_roles_by_themselves_are_one_curve(tmp_path):
    run = make_run(tmp_path)
    begin = {"time_s": 100.0, "kind": "begin", "role": "learn"}
    put(run, "learn-command-1.jsonl", begin, learned(110.0, 500, 40))
    put(run, "actor-command-1.jsonl", acted(50.0, 1.0), acted(105.0, 2.0))
    (row,) = read_curve(run)
    assert (row["seconds"], row["return_mean"]) == (10.0, 2.0)


def test_actors_by_themselves_have_one_return(tmp_path):
    run = make_run(tmp_path)
    begin = {"time_s": 100.0, "kind": "begin", "role": "learn"}
    turns = learned(110.0, 500, 40), learned(120.0, 900, 80)
    put(run, "learn-command-1.jsonl", begin, *turns)
    for index, means in enumerate(((1.0, 2.0), (8.0, 9.0))):
        log = RoleLog("actor", run, 1, index + 1, index)
        for mean in means:
            log.turn({"mean_return": mean, "mean_length": 4.0}, 1.0)
        log.close("done")
        path = run.events / f"actor-command-{index + 1}.jsonl"
        events = [event for event in read_events(path) if event["kind"] == "turn"]
        put(
            run,
            path.name,
            *(e | {"time_s": 105.0 + 10 * i} for i, e in enumerate(events)),
        )
    assert column(read_curve(run), "return_mean") == [4.5, 5.5]


def test_processor_seconds_go_on_and_lie_on_a_line_between(tmp_path):
    run = make_run(tmp_path)
    put(
        run,
        "train-1.jsonl",
        learned(102.0, 100, 1),
        learned(104.0, 200, 2),
        progress(104.0, 8.0),
    )
    put(
        run,
        "train-2.jsonl",
        learned(1002.0, 300, 3),
        progress(1002.1, 3.0),
        learned(1003.0, 400, 4),
    )
    assert column(read_curve(run), "cpu_seconds") == [4.0, 8.0, 11.0, None]


def test_processor_seconds_are_unknown_after_a_call_that_did_not_tell(tmp_path):
    run = make_run(tmp_path)
    put(run, "train-1.jsonl", learned(102.0, 100, 1))
    put(run, "train-2.jsonl", learned(1002.0, 300, 3), progress(1002.1, 3.0))
    assert column(read_curve(run), "cpu_seconds") == [None, None]


def test_csv_has_numbers_as_python_reads_them():
    rows = [dict.fromkeys(COLUMNS) | {"agent_steps": 500.0, "loss": 0.1}]
    header, line, *rest = to_csv(rows).split("\n")
    assert header.split(",") == list(COLUMNS)
    assert line == ",500,,,,,,,,,,0.1"
    assert rest == [""]


def test_the_command_writes_a_file(tmp_path, capsys):
    run = make_run(tmp_path / "run")
    put(run, "train-1.jsonl", learned(102.0, 100, 1))
    path = tmp_path / "a.csv"
    assert main(["curves", str(run.path), str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    with open(path, newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["agent_steps"] == "100"
    assert (told["num_rows"], told["last"]["agent_steps"]) == (1, 100)


@pytest.mark.parametrize(
    ("run", "path", "told"),
    [
        ("absent", "a.csv", "absent"),
        ("run", "a.csv", "has learned nothing yet"),
        ("run", "nowhere/a.csv", "csv ("),
        ("run", "", "csv ("),
        ("run", ".", "csv ("),
    ],
)
def test_bad_usage_is_one_line(tmp_path, monkeypatch, capsys, run, path, told):
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path / "run")
    assert main(["curves", run, path]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert told in error


BUSY = "import time\nwhile time.process_time() < 0.3: pass"


def test_processor_time_counts_children_alive_and_dead():
    before_s = tree_cpu_s()
    if before_s is None:
        pytest.skip("there is no /proc")
    subprocess.run([sys.executable, "-c", BUSY], check=True)
    assert tree_cpu_s() - before_s >= 0.25
    before_s = tree_cpu_s()
    code = f"{BUSY}\nprint(flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        assert tree_cpu_s() - before_s >= 0.25
        child.stdin.close()


def stat(table, process, parent, *ticks):
    folder = table / str(process)
    folder.mkdir()
    fields = ["S", str(parent), *["0"] * 9, *map(str, ticks), *["0"] * 4]
    (folder / "stat").write_text(f"{process} (a) b) {' '.join(fields)}")


def test_the_table_of_processes_is_read_whole(tmp_path):
    stat(tmp_path, 5, 1, 100, 10, 1, 0)
    stat(tmp_path, 3, 5, 200, 20, 2, 0)  # a child of a smaller number
    stat(tmp_path, 4, 3, 300, 30, 3, 0)
    stat(tmp_path, 6, 1, 9999, 0, 0, 0)  # of nobody's
    (tmp_path / "7").mkdir()  # one that has just ended
    ticks = slice(11, 15)
    assert process_fields(tmp_path, 5, ticks) == {5: 111, 3: 222, 4: 333}
    assert process_fields(tmp_path, 8, ticks) == {}
    assert process_fields(tmp_path / "absent", 5, ticks) == {}


def test_memory_is_that_of_a_process_and_of_what_it_started():
    own = tree_memory_bytes(os.getpid())
    if own is None:
        pytest.skip("there is no /proc")
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            of_child = tree_memory_bytes(child.pid)
            assert 0 < of_child < own
            assert tree_memory_bytes(os.getpid()) > of_child
        finally:
            child.kill()
    assert tree_memory_bytes(2**22 + 1) is None


def test_processor_time_is_what_was_used_since_the_last_message(monkeypatch):
    own = [(1.0, 0.5, 0.25, 0.25, 9.0)]
    tree = [5.0]
    monkeypatch.setattr("tengen.observe.cpu_time.os.times", lambda: own[0])
    monkeypatch.setattr("tengen.observe.cpu_time.tree_cpu_s", lambda: tree[0])
    now = [10.0]
    clock = CpuClock(lambda: now[0])
    assert clock.since_last() == 5.0
    own[0], tree[0] = (2.0, 0.5, 0.25, 0.25, 9.0), 7.0
    assert clock.since_last() == 1.0  # children that still run are not looked for
    now[0] += 5.0
    assert clock.since_last() == 1.0
    own[0], tree[0] = (2.0, 0.5, 4.25, 0.25, 9.0), 7.0  # it ended, and was waited for
    now[0] += 5.0
    assert clock.since_last() == 0.0
    monkeypatch.setattr("tengen.observe.cpu_time.tree_cpu_s", lambda: None)
    assert CpuClock(lambda: 0.0).since_last() == 7.0
