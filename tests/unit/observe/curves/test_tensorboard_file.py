"""TensorBoard's own reader reads what is written, whatever happened meanwhile."""

import io
import math
import resource
import subprocess
import sys
import time

import numpy as np
import pytest

from tengen.observe.curves.points import Point
from tengen.observe.curves.tensorboard_file import TensorBoardFile

pytest.importorskip("tensorboard")


class Clock:
    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


def point(step, value, tag="charts/SPS"):
    return Point(step=step, time_s=1000.0 + step, values={tag: value})


def read(folder, tag="charts/SPS"):
    from tensorboard.backend.event_processing import event_accumulator

    reader = event_accumulator.EventAccumulator(str(folder))
    reader.Reload()
    if tag not in reader.Tags()["scalars"]:
        return []
    return [(each.step, each.value) for each in reader.Scalars(tag)]


def test_points_come_back(tmp_path):
    file = TensorBoardFile(tmp_path / "tensorboard", time.monotonic)
    file.add(point(10, 1.5))
    file.add(point(20, 2.5))
    file.add(point(20, 7.0, "losses/entropy"))
    file.close()
    file.close()
    assert read(tmp_path / "tensorboard") == [(10, 1.5), (20, 2.5)]
    assert read(tmp_path / "tensorboard", "losses/entropy") == [(20, 7.0)]


def test_a_call_that_goes_on_draws_no_point_twice(tmp_path):
    first = TensorBoardFile(tmp_path, time.monotonic)
    for step in (10, 20, 30):
        first.add(point(step, 1.0))
    first.close()
    second = TensorBoardFile(tmp_path, time.monotonic)
    for step in (20, 30, 40):
        second.add(point(step, 2.0))
    second.close()
    assert read(tmp_path) == [(10, 1.0), (20, 2.0), (30, 2.0), (40, 2.0)]
    # Though both began within a second.
    stamps = [path.name.split(".")[3] for path in sorted(tmp_path.iterdir())]
    assert len(set(stamps)) == 2


def test_no_file_is_made_before_the_first_point(tmp_path):
    file = TensorBoardFile(tmp_path / "tensorboard", time.monotonic)
    file.tick()
    file.close()
    assert list(tmp_path.iterdir()) == []


def test_points_are_written_every_three_seconds_at_most(tmp_path):
    clock, sizes = Clock(), []
    file = TensorBoardFile(tmp_path, clock)

    def note():
        (path,) = tmp_path.iterdir()
        sizes.append(path.stat().st_size)

    for clock.now_s in (0.0, 1.0, 2.0, 3.5, 4.0, 6.4):
        file.add(point(int(10 * clock.now_s), 1.0))
        note()
    clock.now_s = 6.5
    for _ in range(2):
        file.tick()
        note()
    at_0, at_3_5, at_6_5 = sorted(set(sizes))
    assert sizes == [*[at_0] * 3, *[at_3_5] * 3, *[at_6_5] * 2]
    assert len(read(tmp_path)) == 6


@pytest.fixture
def limit_files():
    """Refuses to make a file longer than so many bytes, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(num_bytes):
        resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))

    yield limit
    limit(before[0])


@pytest.mark.parametrize("room", [0, 20])
def test_a_full_disk_loses_nothing_and_raises_nothing(tmp_path, limit_files, room):
    clock = Clock()
    file = TensorBoardFile(tmp_path, clock)
    file.add(point(1, 1.0))
    (path,) = tmp_path.iterdir()
    size_bytes = path.stat().st_size
    for step in (2, 3):
        clock.now_s += 5.0
        limit_files(size_bytes + room)
        file.add(point(step, 1.0))
        limit_files(resource.RLIM_INFINITY)
        assert path.stat().st_size == size_bytes
        assert read(tmp_path) == [(1, 1.0)]
    clock.now_s += 5.0
    file.add(point(4, 1.0))
    assert [step for step, _ in read(tmp_path)] == [1, 2, 3, 4]


def test_a_folder_that_cannot_be_made_is_tried_again(tmp_path):
    clock, folder = Clock(), tmp_path / "tensorboard"
    folder.write_text("in the way")
    file = TensorBoardFile(folder, clock)
    file.add(point(1, 1.0))
    folder.unlink()
    clock.now_s = 5.0
    file.add(point(2, 1.0))
    assert [step for step, _ in read(folder)] == [1, 2]
    file.close()


def test_on_a_disk_that_stays_full_the_oldest_points_are_lost(tmp_path):
    clock, folder = Clock(), tmp_path / "tensorboard"
    folder.write_text("in the way")
    file = TensorBoardFile(folder, clock)
    file.most_bytes = 1000
    for step in range(100):
        file.add(point(step, 1.0))
    folder.unlink()
    file.close()
    steps = [step for step, _ in read(folder)]
    assert 3 < len(steps) < 50
    assert steps == list(range(100 - len(steps), 100))


@pytest.mark.parametrize("value", [-0.0, 1e-50, 1e39, -1e39, 2**70, math.nan])
def test_any_number_comes_back_as_a_float32(tmp_path, value):
    file = TensorBoardFile(tmp_path, time.monotonic)
    file.add(point(2**40, value, "losses/\u00e9"))
    file.close()
    with np.errstate(over="ignore"):
        wanted = float(np.float32(value))
    ((step, found),) = read(tmp_path, "losses/\u00e9")
    assert step == 2**40
    assert repr(found) == repr(wanted)


def test_the_bytes_are_those_of_tensorboards_own_messages(tmp_path):
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    values = {f"charts/{i}": 1.5 * i for i in range(20)}
    file = TensorBoardFile(tmp_path, time.monotonic)
    file.add(Point(step=300, time_s=1.5, values=values))
    file.close()
    start = SessionLog(status=SessionLog.START)
    summary = [Summary.Value(tag=tag, simple_value=v) for tag, v in values.items()]
    buffer = io.BytesIO()
    for fields in (
        {"file_version": "brain.Event:2"},
        {"step": 300, "session_log": start},
        {"step": 300, "summary": Summary(value=summary)},
    ):
        event = Event(wall_time=1.5, **fields)
        RecordWriter(buffer).write(event.SerializeToString(deterministic=True))
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == buffer.getvalue()


def test_it_is_written_without_the_package_tensorboard(tmp_path):
    code = (
        "import sys; sys.modules['tensorboard'] = None\n"
        "from pathlib import Path\n"
        "from tengen.observe.curves.points import Point\n"
        "from tengen.observe.curves.tensorboard_file import TensorBoardFile\n"
        "assert 'tengen._core' not in sys.modules\n"
        "file = TensorBoardFile(Path(sys.argv[1]), lambda: 0.0)\n"
        "file.add(Point(step=7, time_s=1.0, values={'charts/SPS': 2.0}))\n"
        "file.close()"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True)
    assert read(tmp_path) == [(7, 2.0)]
