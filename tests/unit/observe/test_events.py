import pytest

from tengen.errors import RunError
from tengen.observe import EventWriter, read_events, read_last_event
from tengen.run import RunDirectory


@pytest.fixture
def run(tmp_path):
    return RunDirectory.create_or_resume(tmp_path)


def test_events_come_back_in_order(run):
    number = run.new_incarnation("learner")
    writer = EventWriter(run, "learner", number)
    writer.write("step", loss=0.5)
    writer.write("step", loss=0.25)
    writer.close()
    writer.close()
    events = list(read_events(run.events_path("learner", number)))
    assert [event["loss"] for event in events] == [0.5, 0.25]
    assert all(event["time_s"] > 0 for event in events)


def test_half_a_line_is_passed_over(run):
    path = run.events_path("gate", 1)
    path.write_text('{"time_s": 1, "kind": "a"}\n{"time_s": 2, "kind": "b"')
    assert [event["kind"] for event in read_events(path)] == ["a"]
    path.write_text('{"time_s": 1, "ki\n[3]\n{"time_s": 3, "kind": "c"}\n')
    assert [event["kind"] for event in read_events(path)] == ["c"]


def test_last_event_over_all_files(run):
    run.events_path("a", 1).write_text(
        '{"time_s": 5, "kind": "x", "n": 1}\n{"time_s": 9, "kind": "y"}\n'
    )
    run.events_path("a", 2).write_text('{"time_s": 7, "kind": "x", "n": 2}\n')
    run.events_path("b", 1).write_text('{"time_s": 6, "kind": "x", "n": 3}\n')
    last = read_last_event(run, "x")
    assert last is not None
    assert last["n"] == 2
    assert read_last_event(run, "z") is None


def test_writer_without_a_folder_is_one_clear_line(tmp_path):
    with pytest.raises(RunError, match="cannot be written, no such file"):
        EventWriter(RunDirectory(tmp_path / "absent"), "gate", 1)
