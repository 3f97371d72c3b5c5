"""The scripts that measure the store beside others, and the worth of a table's size."""

import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("gymnasium")

BUSY = "import time\nwhile time.process_time() < 0.5: pass"


@pytest.fixture
def script(load_script):
    return lambda name: load_script(f"store/store_peers/{name}")


def test_cpu_seconds_count_what_children_used(script):
    measure = script("measure")
    before = measure.tree_cpu_seconds()
    subprocess.run([sys.executable, "-c", BUSY], check=True)
    assert measure.tree_cpu_seconds() - before >= 0.45
    with subprocess.Popen(
        [sys.executable, "-c", f"{BUSY}\nprint(flush=True)\ntime.sleep(600)"],
        stdout=subprocess.PIPE,
    ) as child:
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
    seen = set()
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
