"""What ``tengen bench store`` tells, and how its figures come about."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tengen import cli
from tengen.bench import store
from tengen.bench.store_workloads import WORKLOADS


@pytest.mark.parametrize("place", ["memory", "tcp", "disk"])
def test_samples_and_copies_are_read(place, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(store, "_NUM_TURNS", 1)
    monkeypatch.setattr(store, "_WARM_S", 0.1)
    small = replace(WORKLOADS["sac"], batch_size=16)
    monkeypatch.setitem(WORKLOADS, "sac", small)
    words = "bench store --workload sac --seconds 0.2 --memory-gb 0.05 --json"
    where = ["--cold", str(tmp_path)] if place == "disk" else ["--over", place]
    assert cli.main([*words.split(), *where]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["cold"] == (place == "disk")
    [row] = report["rows"]
    assert 0 < row["read_share"] < 1
    assert row["share_of_copies"] > 0
    assert row["unread_share_of_copies"] > 0
    assert list(tmp_path.iterdir()) == []
