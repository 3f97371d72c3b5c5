import contextlib
import itertools
import json
import time

import pytest

from tengen.cli import main
from tengen.observe import EventWriter, Progress
from tengen.observe.status import read_status
from tengen.run import RunDirectory
from tengen.run.lock import WriterLock


@pytest.fixture
def run(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path)
    run.write_run({"config": {"task": "gomoku/9"}})
    return run


def test_a_fresh_run(run):
    status = read_status(run)
    assert status.pop("free_bytes") > 0
    assert status == {
        "run": str(run.path),
        "task": "gomoku/9",
        "running": None,
        "stop_requested": False,
        "num_models": 0,
        "latest_model": None,
        "origin": None,
        "latest_checkpoint": None,
        "num_candidates": 0,
        "gate_too_slow": False,
        "num_rejected": 0,
        "learn_from": None,
        "experience_bytes": 0,
        "unfinished": [],
        "gate": None,
        "target": None,
        "places": [],
        "lost": [],
        "roles": [],
        "ratio": None,
        "progress": None,
    }


def test_a_run_in_progress(run, capsys):
    run.models.publish(17, lambda folder: None)
    segment = run.experience / "selfplay" / "1" / "000000"
    segment.parent.mkdir(parents=True)
    segment.write_bytes(b"x" * 100)
    writer = EventWriter(run, "train", run.new_incarnation("train"))
    writer.write("progress", **Progress(generation=1, elapsed_s=1.0).to_dict())
    last = Progress(generation=2, elapsed_s=9.0, num_games=64, verdict="balanced")
    writer.write("progress", **last.to_dict())
    with run.lock("train"):
        assert main(["status", str(run.path), "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert main(["status", str(run.path)]) == 0
        text = capsys.readouterr().out
    assert report["latest_model"] == 17
    assert report["running"] is not None
    assert report["experience_bytes"] == 100
    assert report["progress"] == last.to_dict()
    assert "000017 is the latest" in text
    assert "running, process" in text
    assert "balanced" in text


def test_what_the_gate_does(run, capsys, monkeypatch):
    """The latest word, whether train runs the gate or the gate runs alone."""
    monkeypatch.setattr(time, "time", itertools.count(1).__next__)

    def shown():
        assert main(["status", str(run.path)]) == 0
        lines = capsys.readouterr().out.splitlines()
        return [
            " ".join(line.split()) for line in lines if line.startswith("candidate")
        ]

    train = EventWriter(run, "train", run.new_incarnation("train"))
    train.write("turn", role="gate", candidate=0, accepted=True)
    train.write("turn", role="learn", candidate=7, summary="no match")
    train.write("gate", candidate="x", summary="damaged")
    assert shown() == []
    train.write("gate", candidate=1, summary="3 pairs, LLR +0.20")
    assert shown() == ["candidate 000001 not decided yet, 3 pairs, LLR +0.20"]
    alone = EventWriter(run, "gate-command", run.new_incarnation("gate-command"))
    alone.write("turn", role="gate", candidate=1, accepted=False, summary="9 pairs")
    assert shown() == ["candidate 000001 rejected, 9 pairs"]
    assert read_status(run)["gate"] == {
        "candidate": 1,
        "accepted": False,
        "summary": "9 pairs",
    }
    alone.write("turn", role="gate", candidate=2, accepted=True, summary="4 pairs")
    assert shown() == ["candidate 000002 accepted, 4 pairs"]


@pytest.mark.parametrize(
    ("kind", "num_candidates", "is_at_work", "is_too_slow"),
    [
        ("sprt", 2, True, False),
        ("sprt", 3, True, True),
        ("sprt", 3, False, False),
        ("accept_all", 3, True, False),
    ],
)
def test_a_gate_that_is_too_slow_is_named(
    run, capsys, kind, num_candidates, is_at_work, is_too_slow
):
    run.write_run({"config": {"task": "gomoku/9", "gate": {"kind": kind}}})
    for number in range(num_candidates):
        run.candidates.publish(number, lambda folder: None)
    with run.lock("gate") if is_at_work else contextlib.nullcontext():
        report = read_status(run)
        assert main(["status", str(run.path)]) == 0
    assert report["num_candidates"] == num_candidates
    assert report["gate_too_slow"] == is_too_slow
    text = capsys.readouterr().out
    assert f"{num_candidates} for the gate" in text
    assert ("too slow" in text) == is_too_slow


@pytest.mark.parametrize(
    ("meta", "shown"),
    [
        (
            '{"origin": {"checkpoint": 7, "num_games": 1280, "num_rows": 45678}}',
            "000003 is the latest, of checkpoint 7, after 1,280 games and 45,678 rows",
        ),
        (
            '{"origin": {"checkpoint": 7, "num_games": null}}',
            "000003 is the latest, of checkpoint 7",
        ),
        ('{"schema": 1}', "000003 is the latest"),
        ('{"origin": null}', "000003 is the latest"),
        ('{"origin": []}', "000003 is the latest"),
        ("[]", "000003 is the latest"),
        ("{", "000003 is the latest"),
    ],
)
def test_what_the_latest_model_was_trained_on(run, capsys, meta, shown):
    run.models.publish(3, lambda folder: (folder / "meta.json").write_text(meta))
    assert main(["status", str(run.path)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert f"models {shown}" in lines
    origin = read_status(run)["origin"]
    assert (origin is not None) == ("checkpoint" in shown)


@pytest.mark.parametrize("value", ["null", "3", "[]", '"x"'])
@pytest.mark.parametrize("name", ["config", "measured"])
def test_a_part_of_run_json_that_is_no_object_is_damage(run, capsys, name, value):
    parts = {"config": "{}", name: value}
    text = ", ".join(f'"{part}": {value}' for part, value in parts.items())
    (run.path / "run.json").write_text(f'{{"schema": 1, {text}}}')
    assert main(["status", str(run.path)]) == 1
    err = capsys.readouterr().err
    assert f"run.json) is damaged, {name} is not an object; restore it" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"schema": 1}', "config is not an object"),
        ('{"schema": 0, "config": {}}', "its schema is 0"),
        ('{"schema": -1, "config": {}}', "its schema is -1"),
    ],
)
def test_a_run_json_that_says_nothing_is_damage(run, capsys, text, why):
    (run.path / "run.json").write_text(text)
    assert main(["status", str(run.path)]) == 1
    assert f"run.json) is damaged, {why}; restore it" in capsys.readouterr().err


def test_events_of_nothing_known_leave_the_rest(run, capsys):
    run.events_path("train", 1).write_text('{"kind": "progress"}\n{"time_s": 1}\n')
    assert main(["status", str(run.path)]) == 0
    assert "models" in capsys.readouterr().out


def test_files_that_go_while_it_reads_are_not_counted(run, monkeypatch):
    folder = run.experience / "selfplay" / "1"
    folder.mkdir(parents=True)
    (folder / "000000.npz").write_bytes(b"x" * 100)
    (folder / "000001.npz").symlink_to(folder / "gone")
    run.models.path.rmdir()
    assert read_status(run)["experience_bytes"] == 100
    assert read_status(run)["num_models"] == 0


def test_a_run_without_games_says_whose_it_learns_from(run, capsys, tmp_path):
    source = RunDirectory.create_or_resume(tmp_path / "games")
    source.write_run({"config": {"task": "gomoku/9"}})
    segment = source.experience / "selfplay-0" / "1" / "000001.npz"
    segment.parent.mkdir(parents=True)
    segment.write_bytes(b"x" * 2_000_000)
    run.write_run({"config": {"task": "gomoku/9", "learn_from": str(source.path)}})
    report = read_status(run)
    assert report["learn_from"] == str(source.path)
    assert report["experience_bytes"] == 2_000_000
    assert main(["status", str(run.path)]) == 0
    text = f"2.0 MB of {source.path}, from whose games this run learns"
    assert text in capsys.readouterr().out
    source.path.rename(tmp_path / "elsewhere")
    assert main(["status", str(run.path)]) == 0
    text = f"none: learn_from ({source.path}) is not a run directory; restore it"
    assert text in capsys.readouterr().out


def test_games_that_nobody_goes_on_with_are_told(run, capsys):
    for writer in ("selfplay-0", "selfplay-1"):
        journal = run.experience / writer / "1" / "000005.journal"
        journal.parent.mkdir(parents=True)
        journal.touch()
    with WriterLock(run.experience / "selfplay-0" / "lock", run.experience):
        assert read_status(run)["unfinished"] == ["selfplay-1"]
    assert main(["status", str(run.path)]) == 0
    assert "selfplay-0, selfplay-1; the same command" in capsys.readouterr().out


def test_stop_asks(run, capsys):
    assert main(["stop", str(run.path)]) == 0
    assert run.stop_requested()
    assert "end" in capsys.readouterr().out
