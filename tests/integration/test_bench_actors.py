"""``tengen bench actors`` works, and its shares match its rates."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tengen import cli
from tengen.observe.cpu_time import process_fields
from tests.integration.runs import HANG_S, wait_for

PROC = Path("/proc")
WORDS = "bench actors --task CartPole-v1 --actors 1 --envs 4 --rounds 1 --seconds 0.5"


def report(capsys, *words):
    assert cli.main([*WORDS.split(), *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_shares_without_a_network(capsys):
    found = report(capsys)
    assert found["net"] == "null"
    share = found["steps_per_cpu_s"] / found["alone_per_cpu_s"]
    assert found["share_of_simulation"] == pytest.approx(share)
    assert "share_of_attainable" not in found


def test_shares_with_one(capsys):
    found = report(capsys, "--net", "mlp", "--precision", "fp32")
    parts_s = 1 / found["alone_per_cpu_s"] + 1 / found["net_per_cpu_s"]
    assert 0 < found["batch_rows"] <= 4
    assert found["share_of_attainable"] == pytest.approx(
        found["steps_per_cpu_s"] * parts_s
    )


def state(process):
    """Returns the letter of a process's state, such as T if it is stopped."""
    try:
        stat = (PROC / f"{process}/stat").read_text()
    except OSError:
        return "ended"
    return stat.rpartition(")")[2].split()[0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_its_processes_end_with_it(number, tmp_path):
    words = [*WORDS.split(), "--rounds", "1000"]
    bench = subprocess.Popen(
        [sys.executable, "-m", "tengen", *words],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    children = set()

    def is_measuring():
        assert bench.poll() is None
        children.update(process_fields(PROC, bench.pid, slice(0)).keys() - {bench.pid})
        return [state(child) for child in children].count("T") == 1

    try:
        wait_for(is_measuring)
        assert len(children) >= 2
        bench.send_signal(number)
        code = bench.wait(HANG_S)
        assert code == (130 if number == signal.SIGTERM else -signal.SIGKILL)
        wait_for(lambda: {state(child) for child in children} <= {"ended", "Z"})
    finally:
        bench.kill()
    if number == signal.SIGTERM:
        assert list(tmp_path.iterdir()) == []
