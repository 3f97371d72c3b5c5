"""The clients of the store's benchmark, by a clock that only they move."""

from types import SimpleNamespace

import numpy as np
import pytest

from tengen.agents import EnvironmentAgent
from tengen.cli.bench import store_clients
from tengen.cli.bench.store_clients import (
    Client,
    latencies,
    run_copies,
    run_sampler,
    run_writer,
)
from tengen.cli.bench.store_workloads import VARIANTS, Workload
from tengen.recipes import make_config
from tengen.run import RunDirectory
from tengen.store import Store, StoreConfig

SMALL = Workload("small", 1000, 1024, False, 0, 51, 51, 4)


class Clock:
    """Stands in for the module ``time``."""

    def __init__(self):
        self.now = 100.0
        self.used = 0.0

    def perf_counter(self):
        return self.now

    def process_time(self):
        return self.used

    thread_time = process_time

    def sleep(self, seconds):
        self.now += seconds

    def work(self, seconds):
        self.now += seconds
        self.used += seconds


class Pipe:
    def send(self, result):
        self.result = result


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(store_clients, "time", clock)
    return clock


@pytest.fixture
def serve(monkeypatch):
    """Returns a function that makes clients connect to a given store."""

    def put(store):
        connected = SimpleNamespace(connect=lambda address: store)
        monkeypatch.setattr(store_clients, "Store", connected)

    return put


@pytest.fixture
def sample(clock, serve):
    """Runs a sampler of batches whose n-th draw takes ``draw_s(n)`` seconds."""

    def run(draw_s, kind=np.ndarray, **options):
        count = 0
        columns = {
            "data": np.ones((4, 1016), np.uint8).view(kind),
            "number": np.ones(4, np.int64).view(kind),
        }

        def draw():
            nonlocal count
            clock.work(draw_s(count))
            count += 1
            return SimpleNamespace(columns=columns, ack=lambda priorities: None)

        table = SimpleNamespace(
            sampler=lambda *args, **options: SimpleNamespace(sample=draw)
        )
        serve(SimpleNamespace(table=lambda name: table))
        pipe = Pipe()
        options = {"warm_s": 0.0, "seconds": 10.0, "rate": 4 * 50.0, **options}
        run_sampler(pipe, Client(SMALL, "", batch_size=4, **options))
        return dict(pipe.result)

    return run


def test_a_stall_counts_for_every_call_that_was_due_meanwhile(sample):
    result = sample(lambda count: 1.8 if count == 100 else 0.001)
    times = latencies([result])
    # 500 calls are due. 91 of them wait, the first 1.8 s and each later one 19 ms less.
    assert result["items"] == 4 * 500
    waits = np.frombuffer(result["waits_s"])
    wanted = np.maximum(1.8 - 0.019 * np.arange(400), 0.001)
    np.testing.assert_allclose(waits[100:], wanted, atol=1e-9)
    assert times["p99_ms"] == pytest.approx(1800 - 19 * 4.99, abs=1)
    assert times["max_ms"] == pytest.approx(1800)
    assert times["service_p99_ms"] == pytest.approx(1)


def test_a_call_that_was_due_and_never_made_counts_too(sample):
    result = sample(lambda count: 9.0 if count == 50 else 0.001, seconds=2.0)
    waits = np.frombuffer(result["waits_s"])
    assert result["items"] == 4 * 51
    assert len(waits) == 100
    np.testing.assert_allclose(waits[51:], 10.0 - np.arange(51, 100) / 50, atol=1e-9)


def test_an_unpaced_call_is_timed_from_when_it_is_made(sample):
    result = sample(lambda count: 0.5 + (count == 3), rate=None)
    assert latencies([result]) == pytest.approx(
        {"p50_ms": 500, "p99_ms": 1330, "max_ms": 1500, "service_p99_ms": 1330},
        abs=20,
    )


def test_latencies_are_of_all_results():
    results = [
        {"waits_s": np.full(100, one).tobytes(), "services_s": np.ones(1).tobytes()}
        for one in (0.001, 0.009, 0.002)
    ]
    assert latencies(results)["p50_ms"] == pytest.approx(2)
    assert latencies(results)["p99_ms"] == pytest.approx(9)


def test_every_byte_of_a_batch_is_read_and_no_latency_has_it(sample, clock):
    read = []

    class Slow(np.ndarray):
        """An array whose sum takes half a second."""

        def sum(self, *args, **options):
            clock.work(0.5)
            read.append(self.nbytes)
            return super().sum(*args, **options)

    result = sample(lambda count: 0.001, Slow, rate=None)
    num_batches = result["items"] // SMALL.batch_size
    assert sum(read) == result["read_bytes"] == num_batches * 4 * 1024
    assert latencies([result])["max_ms"] == pytest.approx(1)
    assert result["read_cpu_seconds"] == pytest.approx(num_batches * 2)


@pytest.mark.parametrize("place", [0, 7, 8, 30, 31])
def test_reading_sees_each_byte(place):
    reading = store_clients._Reading()
    content = np.zeros((4, 8), np.uint8).reshape(-1)[:32]
    reading.read([content])
    assert reading.checksum == 0
    content[place] = 1
    reading.read([content])
    assert reading.checksum > 0
    before = reading.checksum
    reading.read([content[1:]])  # no whole number of words
    assert (reading.checksum > before) == (place > 0)


def test_plain_copies_read_their_batches_too(clock, monkeypatch):
    take = np.take

    def slow(*args, **options):
        clock.work(0.1)
        return take(*args, **options)

    monkeypatch.setattr(np, "take", slow)
    pipe = Pipe()
    run_copies(pipe, Client(SMALL, "", 0.0, 1.0, None, 4))
    assert pipe.result["read_bytes"] == pipe.result["items"] * SMALL.item_bytes > 0


def test_a_writer_reads_nothing(clock, serve):
    class Writer:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def append(self, columns, is_first=None):
            clock.work(0.01)

        def insert_each(self, name, num_steps):
            pass

        def flush(self):
            clock.work(1.0)

    serve(SimpleNamespace(writer=lambda *args, **options: Writer()))
    pipe = Pipe()
    run_writer(pipe, Client(SMALL, "", 0.0, 1.0, None, 4))
    assert pipe.result["read_bytes"] == 0
    # What it had inserted counts once it is there.
    assert pipe.result["seconds"] == pytest.approx(2.0, abs=0.02)


@pytest.mark.parametrize(("num_steps", "period"), [(1, 1), (7, 1), (5, 2), (4, 4)])
@pytest.mark.parametrize("size", [1, 6])
def test_items_of_a_run_begin_a_period_apart(num_steps, period, size):
    item_bytes = 64 * num_steps
    workload = Workload(
        *("run", 100, item_bytes, False, 0, 1, 1, 4),
        num_steps=num_steps,
        period=period,
    )
    assert workload.stored_bytes == 64 * period
    with Store(StoreConfig.of([workload.table(1000)])) as store:
        with store_clients._open_writer(store, "writer", workload) as writer:
            insert = store_clients._inserts(writer, workload, size)
            for _ in range(3):
                insert()
            writer.flush()
        table = store.table("run")
        assert table.describe()["num_items"] == 3 * size
        batch = table.sample(200)
        batch.ack()
    assert sum(column[0].nbytes for column in batch.columns.values()) == item_bytes
    if num_steps == 1:
        return
    # Steps are numbered within a call, of which each begins with the next period.
    firsts = np.unique(batch.columns["number"][:, -1])
    assert firsts.tolist() == list(range(period - 1, size * period, period))


RUNS = {
    "dqn_run": ("atari/Pong", "dqn"),
    "ppo_run": ("atari/Qbert", "ppo"),
    "r2d2_run": ("atari/Pong", "r2d2"),
    "impala_run": ("atari/Qbert", "vtrace"),
    "sac_run": ("mujoco/Hopper", "sac"),
}


@pytest.mark.parametrize("name", RUNS)
def test_it_has_the_defaults_of_its_run(name, tmp_path):
    pytest.importorskip("ale_py" if name != "sac_run" else "mujoco")
    workload = VARIANTS[name]
    config = make_config(*RUNS[name], None)
    agent = EnvironmentAgent.of(config.agent, "learn")
    table = config.family.plan_table(RunDirectory(tmp_path / "run")).table
    layout = agent.layout(config.signature.state)
    assert workload.step_bytes == table.step_bytes
    assert workload.num_steps == table.num_steps
    # Items that are closed share no step with the next ones.
    period = table.num_steps if layout.is_closed else layout.period
    assert workload.period == period
    assert workload.entries == config.store.max_items
    assert workload.is_prioritized == (config.store.sampler == "prioritized")
    assert workload.max_times_sampled == int(config.store.is_queue)
    assert workload.batch_size == config.learner.batch_size
    inserted, sampled = workload.adds_per_s, workload.samples_per_s
    assert sampled == inserted * config.store.samples_per_item
