"""``tengen store`` and ``tengen store top`` as processes, with clients in the test."""

import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tengen import cli
from tengen.roles.store import StoreWatch, lines_of
from tengen.store import Column, Replica, Selector, Store, StoreConfig, TableConfig

CONFIG = """
memory_bytes = 4_000_000

[tables.replay]
max_items = 100
num_steps = 2
sampler = { kind = "prioritized", exponent = 0.5 }

[tables.replay.columns]
"seen/pixels" = { dtype = "uint8", shape = [4, 4] }
reward = { dtype = "float32" }

[tables.queue]
max_times_sampled = 1
sampler = { kind = "fifo" }
limits = { min_cursor = 0.0, max_cursor = 4.0 }
columns = { value = { dtype = "int64" } }
"""


def command(*words):
    return [sys.executable, "-m", "tengen", *map(str, words)]


def run(*words):
    return subprocess.run(command(*words), capture_output=True, text=True, check=False)


@contextlib.contextmanager
def serving(*words):
    """Runs a server; sends SIGTERM at the end, so that it frees its shared memory."""
    process = subprocess.Popen(
        command("store", *words), stdout=subprocess.PIPE, text=True
    )
    try:
        line = process.stdout.readline()
        assert "serves" in line, line
        process.where = line
        yield process
    finally:
        process.terminate()
        process.communicate()


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "tables.toml"
    path.write_text(CONFIG)
    return path


def as_words(settings):
    return [word for setting in settings for word in ("--set", setting)]


def wait_until(holds):
    end = time.monotonic() + 600.0
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def put(store, values, timeout_s=300.0):
    for value in values:
        store.table("queue").insert(
            "a", value, {"value": np.int64(value)}, timeout_s=timeout_s
        )


def put_for_good(folder, values):
    """Inserts and flushes values, so that they survive a kill of the server."""
    with Store.connect(folder) as store:
        put(store, values)
        store.flush(10.0)


def test_a_store_is_served_from_a_file_and_goes_on_from_its_run(tmp_path, config):
    # This path is too long for a socket.
    folder = tmp_path / ("long" * 20) / ("name" * 20)
    with serving(folder, "--config", config, "--set", "seed=7") as server:
        memory = (folder / "store").resolve()
        assert memory != folder / "store"
        store = Store.connect(folder / "store")
        replay = store.table("replay").config
        assert (replay.num_steps, replay.sampler.exponent) == (2, 0.5)
        assert replay.columns["seen/pixels"].shape == (4, 4)
        put(store, [1, 2, 3])
        assert store.table("queue").sample(2).columns["value"].tolist() == [1, 2]
        server.send_signal(signal.SIGTERM)
        assert server.wait(900) == 130
    assert not (folder / "store").is_symlink()
    assert not memory.exists()
    written = json.loads((folder / "run.json").read_text())["config"]
    assert written["seed"] == 7
    assert written["tables"]["queue"]["limits"]["max_cursor"] == 4.0
    assert written["tables"]["replay"]["limits"]["max_cursor"] is None
    [last] = (folder / "events" / "store-1.jsonl").read_text().splitlines()
    event = json.loads(last)
    assert event["kind"] == "store"
    assert [row["name"] for row in event["tables"]] == ["replay", "queue"]
    assert event["tables"][1]["num_items"] == 3

    with serving(folder, "--set", "tables.replay.max_items=5") as server:
        store = Store.connect(folder / "store")
        assert store.table("replay").config.max_items == 5
        assert store.table("queue").config.limits.max_cursor == 4.0
        assert run("stop", folder).returncode == 0
        assert server.wait(900) == 0
    written = json.loads((folder / "run.json").read_text())["config"]
    assert written["tables"]["replay"]["max_items"] == 5
    assert "a store alone), not running" in run("status", folder).stdout


def test_top_tells_what_tables_hold_and_who_waits(tmp_path, config):
    folder = tmp_path / "run"
    with serving(folder, "--config", config) as server:
        store = Store.connect(folder / "store")
        put(store, [0, 1, 2, 3])
        waiting = store.table("queue").sampler(3, num_ahead=3)
        waiting.sample().ack()
        sender = store.writer("slow", "queue")
        sender.append({"value": np.arange(4)})
        for sequence in range(4):
            sender.insert("queue", 1, sequence=sequence)
        top = run("store", "top", folder, "--json")
        assert top.returncode == 0, top.stderr
        report = json.loads(top.stdout.splitlines()[-1])
        replay, queue = report["tables"]
        assert (replay["name"], replay["num_items"], replay["waits"]) == (
            "replay",
            0,
            "",
        )
        assert queue["name"] == "queue"
        assert queue["num_bytes"] == 8 * queue["num_items"] > 0
        assert queue["inserts_per_s"] == queue["samples_per_s"] == 0.0
        assert queue["hit_rate"] is None
        assert (report["trouble"], report["replicas"]) == ("", [])
        assert report["checkpoints"] == {"durability": "none", "age_s": None}
        assert any(line.startswith("writer slow") for line in report["sessions"])
        assert any(
            "sampler" in line and "of queue: sample waits:" in line
            for line in report["sessions"]
        )
        text = run("store", "top", folder, "--once").stdout
        assert "\nqueue" in text
        assert "  writer slow" in text
        assert "\ndurability: none, no checkpoint\nsessions: " in text
        server.send_signal(signal.SIGINT)
        assert server.wait(900) == 130
    gone = run("store", "top", folder, "--once")
    assert gone.returncode == 1
    assert gone.stderr.startswith("tengen: store (")
    assert gone.stderr.count("\n") == 1


def test_rates_are_counted_between_two_looks():
    table = TableConfig(name="t", columns={"value": Column(dtype="int64")})
    with Store(StoreConfig.of([table])) as store:
        watch = StoreWatch(store)
        store.table("t").insert("a", 0, {"value": np.arange(50)})
        store.table("t").sample(10)
        [row] = watch.report()["tables"]
        assert row["inserts_per_s"] > row["samples_per_s"] > 0
        assert row["inserts_per_s"] == pytest.approx(5 * row["samples_per_s"], rel=0.01)
        assert row["hit_rate"] is None  # the store has no disk
        [row] = watch.report()["tables"]
        assert row["inserts_per_s"] == row["samples_per_s"] == 0


def test_hits_are_of_what_was_drawn_between_two_looks(tmp_path):
    table = TableConfig(
        name="t",
        columns={"x": Column(dtype="int64", shape=(500,))},
        sampler=Selector(kind="prioritized", exponent=1.0),
        max_times_sampled=1,
        steps_per_chunk=1,
    )
    disk = {"disk_bytes": 4 << 20, "disk_directory": tmp_path / "disk"}
    with Store(StoreConfig.of([table], memory_bytes=131_072, **disk)) as store:
        watch = StoreWatch(store)
        values = np.arange(200)
        for value in values:
            # The newest four values are sampled first; then the oldest four and the
            # four before the newest.
            first = 1e9 if value >= 196 else float(value < 4 or value >= 192)
            store.table("t").insert("a", value, {"x": np.full(500, value)}, first)
        store.flush()
        assert watch.report()["tables"][0]["hit_rate"] is None
        seen = []
        for num_samples in (4, 8, 0):
            if num_samples:
                batch = store.table("t").sample(num_samples, timeout_s=300.0)
                seen.append(sorted(batch.columns["x"][:, 0].tolist()))
                batch.ack()
            report = watch.report()
            [row] = report["tables"]
            seen.append(row["hit_rate"])
            seen.append(lines_of(report)[1].split()[5])
        newest, oldest = list(range(192, 200)), [0, 1, 2, 3]
        assert seen == [
            *(newest[4:], 1.0, "100.0%"),
            *(oldest + newest[:4], 0.5, "50.0%"),
            *(None, "-"),
        ]


def test_hits_begin_anew_with_the_process_that_serves():
    table = TableConfig(name="t", columns={"value": Column(dtype="int64")})
    with Store(StoreConfig.of([table])) as store:
        described = store.describe()

    class Told:
        def __init__(self, *counts):
            self._counts = iter(counts)

        def describe(self):
            hits, misses = next(self._counts)
            told = {"num_chunk_hits": hits, "num_chunk_misses": misses}
            return {**described, "tables": {"t": described["tables"]["t"] | told}}

    watch = StoreWatch(Told((10, 10), (13, 11), (15, 5), (15, 5)))
    rates = [watch.report()["tables"][0]["hit_rate"] for _ in range(3)]
    assert rates == [0.75, 0.75, None]


def test_one_store_a_run_and_a_killed_one_is_followed(tmp_path, config):
    folder = tmp_path / "run"
    with serving(folder, "--config", config) as server:
        second = run("store", folder)
        assert second.returncode == 2
        assert f"process {server.pid}" in second.stderr
        assert second.stderr.count("\n") == 1
        put_for_good(folder / "store", [1])
        server.kill()
        server.wait()
        assert (folder / "store").is_symlink()
        with serving(folder, "--set", "tables.queue.max_items=7") as heir:
            assert "queue.max_items was 1000000" in heir.stdout.readline()
            store = Store.connect(folder / "store")
            assert store.table("queue").describe()["num_items"] == 1


def test_a_run_that_cannot_be_written_leaves_what_a_killed_store_held(tmp_path, config):
    folder = tmp_path / "run"
    with serving(folder, "--config", config) as server:
        put_for_good(folder / "store", [1, 2])
        server.kill()
        server.wait()
    (folder / "store").unlink()
    (folder / "store").mkdir()  # blocks the symbolic link
    refused = run("store", folder)
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1, refused.stderr
    (folder / "store").rmdir()
    with serving(folder):
        store = Store.connect(folder / "store")
        assert store.table("queue").describe()["num_items"] == 2


def test_a_served_store_listens_for_other_hosts(tmp_path, config):
    folder = tmp_path / "run"
    listening = ("--set", "listen=127.0.0.1:0")
    with serving(folder, "--config", config, *listening) as server:
        assert server.where.endswith(": serves replay, queue\n")
        address = re.search(r"tcp://127\.0\.0\.1:\d+", server.where)[0]
        with Store.connect(address) as client:
            put(client, [5])
        with Store.connect(folder / "store") as client:
            assert client.table("queue").sample(1).columns["value"].tolist() == [5]
    written = json.loads((folder / "run.json").read_text())["config"]
    assert written["listen"] == "127.0.0.1:0"
    wide = run(
        "store", tmp_path / "wide", "--config", config, "--set", "listen=0.0.0.0:0"
    )
    assert wide.returncode == 2
    assert wide.stderr.count("\n") == 1
    assert "token" in wide.stderr


BAD = [
    ("tables.yaml", "", r"config \(.*\) must end in .json or .toml"),
    ("tables.toml", "tables = [", r"config \(.*\) is invalid TOML"),
    ("tables.json", "{", r"config \(.*\) is invalid JSON"),
    ("tables.json", "[]", r"StoreConfig \(\[\]\) must be a mapping"),
    ("tables.json", "{}", r"tables \(none\) must be at least one"),
    ("tables.json", '{"tabels": {}}', r'tabels .* did you mean "tables"'),
    ("tables.json", '{"tables": {"t": {}}}', r"tables.t.columns \(nothing\) is req"),
    (
        "tables.json",
        '{"tables": {"t": {"columns": {"x": {"dtype": "text"}}}}}',
        r"dtype \(text\) must be",
    ),
    (
        "tables.json",
        '{"tables": {"t": {"name": "u", "columns": {"x": {"dtype": "int8"}}}}}',
        r"tables.t.name \(u\) must be t",
    ),
    (
        "tables.json",
        '{"memory_bytes": 10, "tables": {"t": {"columns": {"x": {"dtype": "int8"}}}}}',
        r"memory_bytes \(10, .*\) must hold chunks",
    ),
]


@pytest.mark.parametrize(("name", "text", "error"), BAD)
def test_bad_configs_are_refused_in_a_line(tmp_path, capsys, name, text, error):
    (tmp_path / name).write_text(text)
    folder = tmp_path / "run"
    assert cli.main(["store", str(folder), "--config", str(tmp_path / name)]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert re.search(error, line), line
    assert not (folder / "run.json").exists()


def test_runs_of_other_kinds_are_refused(tmp_path, capsys):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_text('{"schema": 1, "config": {"task": "connect4"}}')
    assert cli.main(["store", str(folder)]) == 2
    assert "trains connect4" in capsys.readouterr().err
    assert cli.main(["store", str(tmp_path / "new")]) == 2
    assert "tables (none)" in capsys.readouterr().err
    assert cli.main(["store", str(tmp_path), "--config", str(tmp_path / "no.toml")])
    assert "cannot be read: no such file" in capsys.readouterr().err


COLD = """
memory_bytes = 131_072

[tables.t]
sampler = { kind = "fifo" }
max_times_sampled = 1
columns = { x = { dtype = "int64", shape = [500] } }
steps_per_chunk = 1
"""


def test_what_memory_does_not_hold_lies_in_the_run_and_outlives_a_kill(tmp_path):
    config, folder = tmp_path / "cold.toml", tmp_path / "run"
    config.write_text(COLD)
    with serving(folder, "--config", config, "--set", "disk_bytes=4000000") as server:
        table = Store.connect(folder / "store").table("t")
        for value in range(200):
            table.insert("a", value, {"x": np.full(500, value)}, timeout_s=300.0)
        assert (folder / "rows" / "rows-0").stat().st_size > 0
        server.kill()
        server.wait()
    with serving(folder) as server:
        sampler = Store.connect(folder / "store").table("t").sampler(4)
        for first in range(0, 200, 4):
            batch = sampler.sample(timeout_s=300.0)
            expected = np.repeat(np.arange(first, first + 4)[:, None], 500, axis=1)
            np.testing.assert_array_equal(batch.columns["x"], expected)
            batch.ack()
        server.terminate()
        assert server.wait(900) == 130
    assert not (folder / "rows").exists()


def test_top_tells_hits_and_what_fails(tmp_path):
    config, folder = tmp_path / "cold.toml", tmp_path / "run"
    config.write_text(COLD)
    settings = (
        "disk_bytes=4000000",
        "durability=checkpoint",
        "tables.t.sampler.kind=uniform",
        "tables.t.max_times_sampled=0",
    )
    with serving(folder, "--config", config, *as_words(settings)):
        store = Store.connect(folder / "store")
        table = store.table("t")
        for value in range(200):
            table.insert("a", value, {"x": np.full(500, value)}, timeout_s=300.0)
        store.checkpoint()
        with open(folder / "rows" / "rows-0", "r+b") as rows:
            for row in range(10, 20):
                rows.seek(row * 4096 + 100)
                rows.write(b"damaged")
        is_over = threading.Event()

        def draw():
            while not is_over.is_set():
                table.sample(4, timeout_s=300.0).ack()

        drawing = threading.Thread(target=draw)
        drawing.start()
        try:
            wait_until(lambda: table.describe()["num_damaged"] == 10)
            report = json.loads(run("store", "top", folder, "--json").stdout)
            text = run("store", "top", folder, "--once").stdout
        finally:
            is_over.set()
            drawing.join()
    [row] = report["tables"]
    # Memory has space for 32 of the 190 chunks.
    assert 0.0 < row["hit_rate"] < 0.5
    assert (row["num_items"], row["num_damaged"]) == (190, 10)
    assert re.search(r"row 1\d of .*rows-0 differs", report["trouble"])
    assert report["checkpoints"]["durability"] == "checkpoint"
    assert report["checkpoints"]["age_s"] > 0.0
    header, line, trouble, damaged, durability, *_ = text.splitlines()
    assert header.index("hits") + 4 == line.index("%") + 1
    assert trouble == f"trouble: {report['trouble']}"
    assert damaged == "damaged: 10 items of t"
    assert re.fullmatch(
        r"durability: checkpoint, a checkpoint \d+\.\d s ago", durability
    )


def test_top_tells_how_far_replicas_are_behind(tmp_path):
    config, folder = tmp_path / "cold.toml", tmp_path / "run"
    config.write_text(COLD)
    settings = ("disk_bytes=4000000", "durability=async", "listen=127.0.0.1:0")
    with serving(folder, "--config", config, *as_words(settings)) as server:
        address = re.search(r"tcp://127\.0\.0\.1:\d+", server.where)[0]
        with Replica(address, tmp_path / "copy", name="copy"):
            store = Store.connect(folder / "store")
            store.table("t").insert("a", 0, {"x": np.zeros(500, np.int64)})
            store.checkpoint()
            wait_until(lambda: store.describe()["replicas"][0]["behind_s"] is not None)
            report = json.loads(run("store", "top", folder, "--json").stdout)
            text = run("store", "top", folder, "--once").stdout
    assert [one["name"] for one in report["replicas"]] == ["copy"]
    assert report["replicas"][0]["behind_s"] >= 0.0
    assert re.search(r"\nreplica copy: \d+\.\d s behind\nsessions: ", text)
