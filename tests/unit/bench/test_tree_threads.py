import json

import pytest

from tengen import _core, cli
from tengen.cli.bench import search as tree_threads


@pytest.fixture
def bench(monkeypatch, give_cores, capsys):
    """Runs ``tengen bench search`` with short turns; returns (code, report, stderr)."""
    monkeypatch.setattr(tree_threads, "_TURN_S", 0.01)
    monkeypatch.setattr(tree_threads, "_NUM_TURNS", 2)
    give_cores(2)

    def run(*words):
        code = cli.main(["bench", "search", *words, "--json"])
        out, err = capsys.readouterr()
        return code, json.loads(out.splitlines()[-1]) if code == 0 else None, err

    return run


def test_every_row_is_measured_against_one_thread(bench):
    words = ("--game", "gomoku/9", "--simulations", "200", "--threads", "2")
    code, report, _ = bench(*words)
    assert code == 0
    rows = report["rows"]
    shapes = [(r["evaluator"], r["threads"], r["batch_rows"]) for r in rows]
    assert shapes == [("null", 1, 1), ("null", 2, 3), ("hash", 1, 1), ("hash", 2, 3)]
    assert [row["speedup"] for row in rows if row["threads"] == 1] == [1.0, 1.0]
    assert all(row["sims_per_s"] > 0 and row["work_ratio"] > 0 for row in rows)
    assert report["cores"] == 2
    assert report["sims_per_cpu_s"] == rows[-1]["sims_per_cpu_s"]
    assert report["kernels"] == _core.kernel_name()


def test_a_network_has_a_row_with_batches_and_one_thread(bench):
    words = ("--game", "tictactoe", "--simulations", "128", "--net", "2x8")
    code, report, _ = bench(*words, "--threads", "2")
    assert code == 0
    shapes = [(row["threads"], row["batch_rows"]) for row in report["rows"]]
    assert shapes == [(1, 1), (1, 2), (2, 2)]


def test_more_threads_than_cores_are_said_once(bench):
    words = ("--game", "tictactoe", "--simulations", "20", "--threads", "5")
    code, report, err = bench(*words)
    assert code == 0
    assert max(row["threads"] for row in report["rows"]) == 2
    assert err.count("\n") == 1
    assert "threads (5) must be at most 2" in err
