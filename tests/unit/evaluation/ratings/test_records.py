import json

import pytest

from tengen.errors import RunError, UsageError
from tengen.evaluation import MatchRecord, Pairing, Tally, read_records
from tengen.evaluation.ratings.records import publish_record
from tengen.run import RunDirectory
from tengen.search import PlayConfig
from tests.refusals import refused


@pytest.fixture
def run(tmp_path):
    return RunDirectory.create_or_resume(tmp_path / "run")


def record(a="000003", b="random", **changed):
    fields = {
        "task": "connect4",
        "a": a,
        "b": b,
        "wins_a": 5,
        "draws": 2,
        "wins_b": 1,
        "num_simulations": 64,
        "opening_plies": 2,
        "seed": 9,
    }
    return MatchRecord(**{**fields, **changed})


def test_records_come_back_in_order(run):
    names = ["000010", "000010", "000002", *["000010"] * 9]
    for seed, name in enumerate(names):
        publish_record(run, name, record(a=name, seed=seed))
    assert [r.seed for r in read_records(run)] == [2, 0, 1, *range(3, 12)]
    assert (run.eval / "000010-11.json").exists()


def test_a_record_is_a_pairing():
    assert record().to_pairing() == Pairing("000003", "random", Tally(5, 2, 1))


def test_a_run_without_records_has_none(tmp_path):
    assert read_records(RunDirectory(tmp_path)) == []


def test_other_files_are_passed_over(run):
    for name in (".tmp-host-1-x-000001-1.json", "notes.txt", "gate.json"):
        (run.eval / name).write_text("no")
    assert read_records(run) == []


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"schema": 1, "a'])
def test_a_damaged_record_is_named(run, text):
    (run.eval / "000001-1.json").write_text(text)
    with pytest.raises((RunError, UsageError), match=r"000001-1\.json"):
        read_records(run)


def test_a_record_of_before_is_of_a_player_as_it_was_then(run):
    path = publish_record(run, "000003", record())
    content = json.loads(path.read_text())
    assert content.pop("play")["search"]["policy"] == "puct"
    path.write_text(json.dumps({**content, "schema": 1}))
    assert [r.play for r in read_records(run)] == [PlayConfig()]


def test_a_newer_schema_is_refused(run):
    path = publish_record(run, "000001", record())
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "schema": 99}))
    with refused(UsageError, "schema (99)"):
        read_records(run)
