"""The script that compares a device's answers, on the CPU as a device."""

import json

import pytest

from tests.host_device import HostDevice


@pytest.mark.parametrize("is_wrong", [False, True])
def test_answers_that_differ_are_named_with_the_way_they_came(
    load_script, monkeypatch, capsys, is_wrong
):
    script = load_script("gpu/gpu_check")
    if is_wrong:
        run = script.DeviceLane.run

        def run_wrongly(lane, num_rows):
            run(lane, num_rows)
            lane.outputs["value"][num_rows - 1] += 1.0

        monkeypatch.setattr(script.DeviceLane, "run", run_wrongly)
    script.CudaDevice = lambda word: HostDevice()
    script.main(["--devices", "cpu", "--cases", "gomoku/5:2x8"])
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    errors = set(report.pop("errors"))
    both = ("fp32", "bf16")
    lanes = {f"gomoku/5:2x8 {precision} lanes" for precision in both}
    assert errors == (lanes if is_wrong else set())
    assert set(report) | errors == lanes | {f"gomoku/5:2x8 {p} bind" for p in both}
