"""The scripts that measure the store beside others, and the worth of a table's size."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("gymnasium")

SCRIPTS = Path(__file__).parents[3] / "benchmarks" / "store"
BUSY = "import time\nwhile time.process_time() < 0.5: pass"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS / "store_peers"))
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module


def test_cpu_seconds_count_what_children_used(script):
    measure = script("measure")
    before = measure.tree_cpu_seconds()
    subprocess.run([sys.executable, "-c", BUSY], check=True)
    assert measure.tree_cpu_seconds() - before >= 0.45
    with subprocess.Popen(
        [sys.executable, "-c", f"{BUSY}\nprint(flush=True)\ntime.sleep(600)"],
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        used = measure.tree_cpu_seconds() - before
        child.kill()
    assert used >= 0.9


@pytest.mark.parametrize("name", ["InProcess", "AcrossProcesses"])
def test_our_peer_gives_back_what_was_inserted(script, name):
    table = script("peer").Table({"data": ("uint8", (512,))}, 64, 16, True)
    peer = getattr(script("tengen_peer"), name)(table)
    items = np.arange(64, dtype=np.uint8)[:, None].repeat(512, axis=1)
    peer.insert({"data": items[:63]})
    peer.insert({"data": items[63:]})
    peer.flush()
    seen: set[int] = set()
    for _ in range(40):
        drawn = peer.sample()
        assert (drawn.columns["data"] == drawn.columns["data"][:, :1]).all()
        assert drawn.weights.max() == 1.0
        seen |= set(drawn.columns["data"][:, 0].tolist())
        drawn.update(np.ones(16))
    peer.close()
    assert seen == set(range(64))


def test_a_table_has_medians_of_items_a_cpu_second(script, tmp_path, capsys):
    rows = [
        {"store": "a", "workload": "3KB", "figure": figure, "items": items}
        | {"cpu_seconds": 2.0}
        for figure in ("copy", "sample")
        for items in (2000, 6000, 4000)
    ]
    rows.append({"store": "b", "workload": "3KB", "error": "not installed"})
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    script("tables").print_tables(path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "b, 3KB: not installed"
    assert "| a | 2 k (1 k-3 k) |" in lines


def test_the_returns_of_a_replay_are_those_of_its_episodes(script):
    replay_size = script("replay_size")
    learner, rng = replay_size.Learner(), np.random.default_rng(0)
    size, length = replay_size.BATCH_SIZE, replay_size.NUM_RETURN_STEPS + 1
    columns = {
        "observation": rng.normal(size=(size, length, 4)).astype(np.float32),
        "action": rng.integers(0, 2, (size, length)),
        "reward": rng.normal(size=(size, length)).astype(np.float32),
        "is_end": rng.random((size, length)) < 0.3,
        "is_terminal": rng.random((size, length)) < 0.5,
    }
    columns["is_end"][:, 0] = False
    columns["is_terminal"] &= columns["is_end"]
    online, target = (
        values(network, columns["observation"])
        for network in (learner._online, learner._target)
    )
    wanted = []
    for row in range(size):
        total = 0.0
        for t in range(length):
            if t == length - 1 or columns["is_end"][row, t]:
                if not columns["is_terminal"][row, t]:
                    best = online[row, t].argmax()
                    total += replay_size.DISCOUNT**t * target[row, t, best]
                break
            total += replay_size.DISCOUNT**t * columns["reward"][row, t]
        wanted.append(abs(online[row, 0, columns["action"][row, 0]] - total) + 1e-3)
    found = learner.update(columns, np.ones(size))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def values(network: Any, observations: Any) -> Any:
    import torch

    with torch.no_grad():
        return network(torch.as_tensor(observations)).numpy()


def test_a_table_that_grows_is_learnt_from(script, monkeypatch):
    replay_size = script("replay_size")
    monkeypatch.setattr(replay_size, "EVALUATE_EVERY", 150)
    monkeypatch.setitem(replay_size.VARIANTS, "small", (70, 140))
    row = replay_size.train(("small", 0, 300))
    assert len(row["curve"]) == 2
    assert min(row["curve"]) > 5
    assert row["samples_per_cpu_s"] > 0


def test_a_checkpoint_is_measured_and_gone_on_with(script, tmp_path):
    result = script("store_checkpoint").measure(tmp_path, 20_000_000)
    assert result["num_bytes"] == 181 * 110_000
    assert result["first"]["seconds"] > 0
    assert result["second"]["max_ms"] >= result["second"]["median_ms"]
    assert list(tmp_path.iterdir()) == []
