"""The roles of a run on a GPU, which is the CPU here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tengen.inference import device_backend
from tengen.inference.device_backend import DeviceBackend
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, read_config, write_config
from tengen.run import RunDirectory
from tests.host_device import HostDevice

SETTINGS = (
    "inference.devices=cuda:0",
    "learner.device=cpu",
    "agent.actor.games_per_generation=24",
    "agent.actor.full_simulations=8",
    "store.min_rows=50",
    "learner.batch_size=32",
)


@pytest.fixture(autouse=True)
def cpu_as_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("tengen.inference.config._num_gpus", lambda: 1)
    monkeypatch.setattr(
        "tengen.inference.device_backend.CudaDevice", lambda word: HostDevice()
    )
    monkeypatch.setattr(
        DeviceBackend, "rate", lambda self, num_rows, seconds: min(num_rows, 256)
    )
    torch.set_num_threads(1)  # as a TorchRunner leaves its thread, for good
    yield
    device_backend._fitting_rows.clear()


def turn(run: RunDirectory, name: str) -> dict[str, Any]:
    role = make_role(name, read_config(run), run, RoleContext(num_threads=2))
    try:
        report = role.turn()
    finally:
        role.close()
    assert report is not None
    return dict(report)


def test_a_run_on_a_device_chooses_plays_and_learns(tmp_path: Path) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, override(make_config("tictactoe", None, None), SETTINGS))
    for name in ("learn", "export", "gate"):
        turn(run, name)
    inference = read_config(run).inference
    assert inference.devices == "cuda:0"
    assert (inference.backend, inference.batch_shape) == ("torch", "dynamic")
    assert inference.device_rows == 256
    measured = run.read_run()["measured"]["inference"]
    assert measured["deterministic"] is False
    played = turn(run, "selfplay")
    assert played["num_games"] == 24
    assert played["batch_capacity"] == 8  # three batches of all games
    assert 0 < played["batch_rows"] <= 8
    for share in ("inference_busy", "tree_busy"):
        assert 0.0 <= played[share] <= 1.0
    assert "warning" not in played
    num_asked = played["num_cache_hits"] + played["num_evaluations"]
    assert 0 < played["cache_hit_share"] == played["num_cache_hits"] / num_asked < 1
    learned = turn(run, "learn")
    assert learned["num_steps"] > 0
    turn(run, "export")


def test_what_did_not_fit_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    config = override(make_config("tictactoe", None, None), SETTINGS)
    games = ("agent.actor.games_per_generation=96", "agent.actor.cache_mib=0")
    write_config(run, override(config, games))
    for name in ("learn", "export", "gate"):
        turn(run, name)

    class Full(HostDevice):
        def host_memory(self, shape: Any, dtype: Any) -> Any:
            assert shape[0] <= 16
            return super().host_memory(shape, dtype)

        def record(self, function: Any) -> Any:
            self.num_recorded = getattr(self, "num_recorded", 0) + 1
            if self.num_recorded == 1:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return super().record(function)

    monkeypatch.setattr(
        "tengen.inference.device_backend.CudaDevice", lambda word: Full()
    )
    config = read_config(run)
    role = make_role("selfplay", config, run, RoleContext(num_threads=2))
    try:
        reports = [role.turn(), role.turn()]  # on one model
    finally:
        role.close()
    assert [report.get("warning") for report in reports if report is not None] == [
        "inference.device_rows (32) exceeds the memory; batches have at most 16 rows",
        None,
    ]
    assert all("cache_hit_share" not in report for report in reports if report)
