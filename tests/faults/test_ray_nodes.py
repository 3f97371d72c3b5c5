"""A local Ray cluster of several nodes that are lost one after another."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tengen.observe import read_hosts
from tengen.observe.status import read_status
from tengen.roles import read_config
from tengen.run import RunDirectory
from tests.faults.role_processes import games_in_journals, games_in_segments
from tests.integration.runs import SMALL, events, train_command, wait_for

SMALL_NODE = {"object_store_memory": 80_000_000}
SHORT_WAIT = "launch.wait_minutes=1"


def games(run: RunDirectory) -> dict[Any, str]:
    """Returns the hashes of the contents of all durable games."""
    found = (*games_in_journals(run), *games_in_segments(run))
    return {game: content for _, game, content in found}


@pytest.mark.soak
def test_nodes_are_lost_until_none_is_left(
    tmp_path: Path,
    start: Callable[[list[str]], subprocess.Popen[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The learner restarts on another node until no node is left, then the run ends."""
    pytest.importorskip("ray", reason="Ray is not installed")
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "120")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    # A head node without cores gets no role.
    head = {"num_cpus": 0, "include_dashboard": False, **SMALL_NODE}
    cluster: Any = Cluster(initialize_head=True, head_node_args=head)
    try:
        # Each node has cores for only one self-play process.
        nodes = [cluster.add_node(num_cpus=4, **SMALL_NODE) for _ in range(3)]
        out = tmp_path / "run"
        run = RunDirectory(out)
        settings = (*SMALL, SHORT_WAIT, f"launch.address={cluster.address}")
        words = train_command(out, 10**8, "--launch", "ray", settings=settings)
        child = start([sys.executable, "-P", *words[1:]])

        def place(role: str) -> str:
            hosts = read_hosts(run) if out.exists() else None
            places = {one.name: one.place for one in hosts.places} if hosts else {}
            return places.get(role, "")

        def players() -> list[str]:
            found = [place(f"selfplay-{index}") for index in range(3)]
            return found if all(found) else []

        wait_for(lambda: run.path.exists() and len(run.models.numbers()) > 1, 400)
        # Without a setting, each node gets one self-play process.
        assert read_config(run).launch.of("selfplay").count == 3
        wait_for(players)
        assert len({*players()}) == 3
        left = {f"node {one.node_id[:8]}": one for one in nodes}
        durable: dict[Any, str] = {}
        while left:
            durable |= games(run)
            checkpoint = run.checkpoints.latest()
            assert checkpoint is not None
            lost = place("learn")
            cluster.remove_node(left.pop(lost), allow_graceful=False)
            if not left:
                break
            wait_for(lambda lost=lost: place("learn") not in ("", lost))
            wait_for(lambda last=checkpoint: run.checkpoints.latest() > last)
            assert child.poll() is None
        # No node is left: the run reports that it waits, and then fails.
        wait_for(lambda: events(out, "waiting"))
        start_s = time.monotonic()
        verdict = ""
        while child.poll() is None and time.monotonic() - start_s < 300:
            progress = read_status(run)["progress"]
            verdict = progress["verdict"] if progress else ""
            time.sleep(0.5)
        _, errors = child.communicate(timeout=900)
        assert child.returncode == 1
        last = errors.strip().splitlines()[-1]
        # The learner also finds no node; its restart is delayed after several deaths.
        assert re.search(r"^tengen: role \(learn.*\) has waited", last)
        assert "wait for the cluster" in verdict, verdict
        assert durable.items() <= games(run).items()
    finally:
        cluster.shutdown()
