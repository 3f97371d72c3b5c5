"""Compares a device's outputs with torch's on the CPU, directly and through lanes.

    python benchmarks/gpu/gpu_check.py --devices cuda:0 --cases "gomoku/15:6x96"

The last line is one JSON object; ``errors`` lists the cases whose differences exceed
the tolerance of the precision.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import torch

from tengen import _core, games
from tengen.cli.bench.random_model import bench_net, write_random_model
from tengen.errors import RunError
from tengen.inference import Arrays, Backend, RowLayout
from tengen.inference.backend import NO_STATE
from tengen.inference.device import CudaDevice
from tengen.inference.device_backend import DeviceBackend, DeviceLane
from tengen.models import check_export
from tengen.nets import board_of

MAX_ROWS = 64
# Sizes that use every prepared batch size, both full and partly filled.
BATCHES = (1, 8, 9, 20, 40, 64)


class ThroughLanes:
    """A backend that takes packed rows through its lanes in turn, as self-play does."""

    def __init__(self, backend: DeviceBackend, layout: RowLayout) -> None:
        self.name = backend.name
        self.version = backend.version
        self.precision = backend.precision
        self.batch_shape = backend.batch_shape
        self.signature = backend.signature
        self._layout = _core.RowLayout(layout.planes_shape, layout.is_packed)
        self._lanes = backend.open_lanes(layout, MAX_ROWS)

    def bind(
        self, inputs: Arrays, outputs: Arrays, state: Arrays = NO_STATE
    ) -> LanesRunner:
        return LanesRunner(self._lanes, self._layout, inputs, outputs)


class LanesRunner:
    """A runner that cuts rows into ``BATCHES`` and uses the lanes in turn."""

    def __init__(
        self,
        lanes: list[DeviceLane],
        layout: _core.RowLayout,
        inputs: Arrays,
        outputs: Arrays,
    ) -> None:
        self._lanes = lanes
        self._layout = layout
        self._planes, self._outputs = inputs["planes"], outputs

    def run(self, num_rows: int) -> None:
        assert num_rows == sum(BATCHES)
        start = 0
        for turn, size in enumerate(BATCHES):
            lane = self._lanes[turn % len(self._lanes)]
            rows = slice(start, start + size)
            _core.write_rows(self._layout, self._planes[rows], lane.rows[:size])
            lane.run(size)
            for name, array in self._outputs.items():
                array[rows] = lane.outputs[name][:size]
            start += size


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", default="cuda:0")
    parser.add_argument("--cases", default="gomoku/15:6x96")
    args = parser.parse_args(arguments)
    report: dict[str, object] = {}
    errors: dict[str, str] = {}
    for case in args.cases.split():
        game, net = case.split(":", 1)
        rules = games.make(game)
        layout = RowLayout((rules.num_planes, rules.height, rules.width))
        planes = games.random_positions(rules, sum(BATCHES), seed=1)
        with tempfile.TemporaryDirectory() as folder:
            directory, asked = Path(folder) / "model", board_of(rules).signature
            write_random_model(directory, asked, bench_net(net), task=game)
            for precision in ("fp32", "bf16"):
                backend = DeviceBackend(
                    directory,
                    precision=precision,
                    devices=[CudaDevice(word) for word in args.devices.split(",")],
                    max_rows=MAX_ROWS,
                )
                ways: dict[str, Backend] = {
                    "bind": backend,
                    "lanes": ThroughLanes(backend, layout),
                }
                for way, tried in ways.items():
                    name = f"{case} {precision} {way}"
                    try:
                        found = check_export(directory, tried, {"planes": planes})
                        report[name] = found.record()
                    except RunError as error:
                        errors[name] = str(error)
            if args.devices != "cpu" and not any("memory" in way for way in report):
                report[f"{case} short memory"] = short_of_memory(backend, layout)
    print(json.dumps({**report, "errors": errors}))


def short_of_memory(backend: DeviceBackend, layout: RowLayout) -> dict[str, object]:
    """Returns a lane's number of rows if the process may use 2 % of the memory."""
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.02)
    backend.max_rows = 1 << 20
    lanes = backend.open_lanes(layout, 1 << 17)
    lanes[0].run(len(lanes[0].rows))
    torch.cuda.set_per_process_memory_fraction(1.0)
    return {"rows": len(lanes[0].rows), "notes": backend.notes}


if __name__ == "__main__":
    main()
