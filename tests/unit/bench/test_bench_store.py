"""What ``tengen bench store`` tells, and how its figures come about."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tengen import cli
from tengen.bench import store, store_cold
from tengen.bench.store_workloads import WORKLOADS

DQN = WORKLOADS["dqn"]
CORE = Path(__file__).parents[3] / "core"
NUM_ITEMS = 32_000  # delivered in a turn


class Server:
    """Delivers as much in each turn, of which nine tenths come from the disk."""

    address = "nowhere"
    row_files = ("rows-0",)
    capacities = (1000,)
    num_turns = 0
    disk_bytes = 0
    misses = 0.9

    def __init__(self, *_: Any) -> None:
        pass

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def disk_bytes_read(self) -> int:
        return self.disk_bytes

    def measure(self, clients: Any) -> tuple[list[dict[str, Any]], float]:
        self.num_turns += 1
        [(_, client)] = clients
        num_drawn = 2 * NUM_ITEMS + client.num_ahead * client.batch_size
        self.disk_bytes += round(self.misses * num_drawn * DQN.row_bytes)
        waits = np.full(100, self.num_turns / 1e3).tobytes()
        result = {
            "items": NUM_ITEMS,
            "all_items": 2 * NUM_ITEMS,
            "seconds": 2.0,
            "cpu_seconds": 1.0,
            "waits_s": waits,
            "services_s": waits,
        }
        return [result], 1.0


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Returns the row of a store, the disk alone, and what was asked of the disk."""

    def run(disk_rate: float) -> tuple[dict[str, Any], list[Any]]:
        asked = []

        def together(clients: Any) -> list[dict[str, Any]]:
            [(_, reads)] = clients
            asked.append(reads)
            rate = disk_rate * (1.0 if reads.depth == 64 else 0.7)
            return [{"bytes/s": rate, "is_past_cache": True}]

        monkeypatch.setattr(store_cold, "ServerProcess", Server)
        monkeypatch.setattr(store_cold, "together", together)
        return store_cold.run_cold(DQN, "memory", 10**9, 2.0, tmp_path), asked

    return run


def test_the_share_is_of_what_came_from_the_disk(cold):
    rate = 0.9 * NUM_ITEMS / 2 * DQN.row_bytes
    row, _ = cold(rate)
    assert row["share_of_disk"] == pytest.approx(1.0)
    assert row["read_gb/s"] == pytest.approx(rate / 1e9)
    assert row["disk_64_gb/s"] == pytest.approx(rate / 1e9)
    assert row["disk_32_gb/s"] == pytest.approx(0.7 * rate / 1e9)
    assert row["rows/sample"] == pytest.approx(0.9)
    # More was delivered, from memory.
    assert row["gb/s"] == pytest.approx(NUM_ITEMS / 2 * DQN.stored_bytes / 1e9)


def test_the_disk_is_asked_for_as_much_at_once_as_the_store_asks(cold):
    _, asked = cold(1e9)
    text = (CORE / "store" / "disk" / "disk_tier.cc").read_text()
    [num_threads] = re.findall(r"kNumThreads = (\d+);", text)
    assert {reads.depth for reads in asked} == {int(num_threads), 2 * int(num_threads)}
    assert {reads.row_bytes for reads in asked} == {DQN.row_bytes}


def test_latencies_are_of_all_turns(cold):
    row, _ = cold(1e9)
    assert row["p50_ms"] == pytest.approx(3)
    assert row["p99_ms"] == pytest.approx(5)


def test_a_share_that_is_not_known_is_not_0(cold, monkeypatch):
    monkeypatch.setattr(Server, "misses", 0.0)
    row, _ = cold(1e9)
    assert row["share_of_disk"] is row["read_gb/s"] is row["rows/sample"] is None


@pytest.mark.parametrize("over", ["memory", "tcp"])
def test_a_store_on_a_disk_is_measured(over, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(store_cold, "_NUM_TURNS", 1)
    monkeypatch.setattr(store_cold, "_WARM_S", 0.1)
    monkeypatch.setitem(WORKLOADS, "sac", replace(WORKLOADS["sac"], batch_size=16))
    words = f"--cold {tmp_path} --over {over} --workload sac --seconds 0.2"
    words += " --memory-gb 0.05 --json"
    assert cli.main(["bench", "store", *words.split()]) == 0
    report = json.loads(capsys.readouterr().out)
    assert "random rows of the store's own file" in report["baseline"]
    [row] = report["rows"]
    assert row["row_bytes"] == 65536  # of a chunk, not of a step
    assert row["samples/s"] > 0
    assert row["disk_32_gb/s"] > 0
    if row["past_cache"]:
        assert row["rows/sample"] > 0
        # On a busy machine those on their way, which are not counted, may be as many.
        assert row["rows/sample"] <= 1 or row["samples/s"] < 5000
    assert list(tmp_path.iterdir()) == []


def test_samples_and_copies_are_read(monkeypatch, capsys):
    monkeypatch.setattr(store, "_NUM_TURNS", 1)
    monkeypatch.setattr(store, "_WARM_S", 0.1)
    small = replace(WORKLOADS["sac"], entries=10_000, batch_size=16)
    monkeypatch.setitem(WORKLOADS, "sac", small)
    words = "bench store --workload sac --seconds 0.2 --memory-gb 0.02"
    assert cli.main([*words.split(), "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)["rows"]
    assert 0 < row["read_share"] < 1
    assert row["share_of_copies"] > 0
    assert row["unread_share_of_copies"] > 0
