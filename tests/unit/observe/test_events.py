import pytest

from tengen.errors import RunError
from tengen.observe import EventWriter, Progress, read_events, read_progress
from tengen.run import RunDirectory


@pytest.fixture
def run(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path)
    run.write_run({"config": {}})
    return run


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


def put(run, name, *lines):
    (run.events / name).write_text("".join(f"{line}\n" for line in lines))


def progress(time_s, generation):
    return (
        f'{{"time_s": {time_s}, "kind": "progress", "generation": {generation}, '
        f'"elapsed_s": 1}}'
    )


def test_last_progress_over_all_files(run):
    assert read_progress(run) is None
    put(run, "a-1.jsonl", progress(5, 1), '{"time_s": 9, "kind": "turn"}')
    put(run, "a-2.jsonl", progress(7, 2))
    put(run, "b-1.jsonl", progress(6, 3))
    assert read_progress(run) == Progress(generation=2, elapsed_s=1.0)


@pytest.mark.parametrize(
    "line",
    [
        '{"kind": "progress", "generation": 9, "elapsed_s": 1}',
        '{"time_s": "late", "kind": "progress", "generation": 9, "elapsed_s": 1}',
        '{"time_s": 9, "kind": "progress"}',
        '{"time_s": 9, "kind": "progress", "generation": "nine", "elapsed_s": 1}',
        '{"time_s": 9, "kind": "progress", "generation": 9, "elapsed_s": NaN}',
        '{"time_s": 9, "kind": "progress", "generation": 9, "elapsed_s": 1',
        "[" * 100_000,
        "\0",
    ],
)
def test_a_damaged_progress_is_passed_over_for_the_one_before(run, line):
    put(run, "a-1.jsonl", progress(5, 1), line)
    assert read_progress(run) == Progress(generation=1, elapsed_s=1.0)


def test_a_file_that_is_gone_has_no_events(run):
    assert list(read_events(run.events / "gone-1.jsonl")) == []


def test_writer_without_a_folder_is_one_clear_line(tmp_path):
    with pytest.raises(RunError, match="cannot be written, no such file"):
        EventWriter(RunDirectory(tmp_path / "absent"), "gate", 1)
