"""The script that compares a device's answers, on the CPU as a device."""

import importlib.util
import json
from pathlib import Path

import pytest

from tests.host_device import HostDevice

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "gpu" / "gpu_check.py"


@pytest.mark.parametrize("is_wrong", [False, True])
def test_answers_that_differ_are_named_with_the_way_they_came(
    monkeypatch, capsys, is_wrong
):
    spec = importlib.util.spec_from_file_location("gpu_check_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    if is_wrong:
        run = script.DeviceLane.run

        def run_wrongly(lane, num_rows):
            run(lane, num_rows)
            lane.outputs["value"][num_rows - 1] += 1.0

        monkeypatch.setattr(script.DeviceLane, "run", run_wrongly)
    monkeypatch.setattr(script, "CudaDevice", lambda word: HostDevice())
    script.main(["--devices", "cpu", "--cases", "gomoku/5:2x8"])
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    errors = set(report.pop("errors"))
    both = ("fp32", "bf16")
    lanes = {f"gomoku/5:2x8 {precision} lanes" for precision in both}
    assert errors == (lanes if is_wrong else set())
    assert set(report) | errors == lanes | {f"gomoku/5:2x8 {p} bind" for p in both}
