import contextlib

from tengen.observe import Metrics, Window


class Clock:
    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s


def test_window_gives_rates_and_shares():
    clock = Clock()
    metrics = Metrics("actor", clock)
    metrics.count("num_rows", 5)
    before = metrics.snapshot()
    with metrics.waiting("inference"):
        clock.now_s += 1.0
    with metrics.busy("search"):
        clock.now_s += 3.0
    metrics.count("num_rows", 20)
    metrics.gauge("loss", 0.5)
    window = Window(before, metrics.snapshot())
    assert window.seconds == 4.0
    assert window.increase("num_rows") == 20
    assert window.rate("num_rows") == 5.0
    assert window.waiting("inference") == 0.25
    assert window.busy("search") == 0.75
    assert window.busy("search", num_threads=2) == 0.375
    assert window.busy("never") == 0.0


def test_shares_stay_in_the_unit_interval():
    clock = Clock()
    metrics = Metrics("actor", clock)
    before = metrics.snapshot()
    clock.now_s += 1.0
    metrics.add_wait("store", 5.0)
    assert Window(before, metrics.snapshot()).waiting("store") == 1.0


def test_empty_window_divides_by_nothing():
    now = Metrics("actor", Clock()).snapshot()
    assert Window(now, now).rate("x") == 0.0
    assert Window(now, now).busy("x") == 0.0


def test_time_is_counted_when_the_stage_raises():
    clock = Clock()
    metrics = Metrics("actor", clock)
    with contextlib.suppress(ValueError), metrics.busy("step"):
        clock.now_s += 2.0
        raise ValueError
    assert metrics.snapshot().busy_s == {"step": 2.0}


def test_snapshot_does_not_change_afterwards():
    metrics = Metrics("actor", Clock())
    metrics.count("a")
    snapshot = metrics.snapshot()
    metrics.count("a")
    assert snapshot.to_dict() == {
        "role": "actor",
        "counters": {"a": 1},
        "gauges": {},
        "busy_s": {},
        "waits_s": {},
    }
