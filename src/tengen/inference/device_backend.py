"""Inference on GPUs by torch: CUDA graphs for batch sizes, and lanes of batches.

Self-play uses lanes, which many threads fill together (core/inference/shared_port.h).
Other callers, which have few rows, bind a runner as with other backends.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from tengen.errors import RunError, UsageError
from tengen.inference.backend import NO_STATE, Arrays
from tengen.inference.choice import Choice
from tengen.inference.config import BatchShape, InferenceConfig, Precision
from tengen.inference.device import Device, make_device
from tengen.inference.devices import parse_devices
from tengen.inference.programs import MIN_BUCKET_ROWS, Batch, Programs, rate
from tengen.inference.rows import RowLayout
from tengen.inference.torch_backend import (
    LoadedHead,
    TorchRunner,
    load_inference_head,
)
from tengen.nets import Net

__all__ = [
    "DeviceBackend",
    "DeviceLane",
    "choose_on_devices",
    "device_trial",
    "open_on_devices",
]

_LANES_PER_DEVICE = 4
"""Of four batches, one is computed, one waits, one is filled and one is read."""

_fitting_rows: dict[str, int] = {}
"""Rows that fit a device on which larger batches did not: later models begin there."""


class DeviceLane:
    """The memory of one batch and what evaluates it; a ``Runner``. Used by one thread.

    Attributes:
        rows: ``[N, layout.num_bytes]`` uint8, the rows to evaluate.
        outputs: The answers, by the names of the backend's signature.
        device: The index of the lane's device among the backend's devices.
    """

    def __init__(
        self,
        programs: Programs,
        device: Device,
        place: int,
        host: Batch,
        on_device: Batch,
    ) -> None:
        self.rows: NDArray[np.uint8] = host.rows.numpy()
        self.outputs: Arrays = {
            name: answer.numpy() for name, answer in host.answers.items()
        }
        self.device = place
        self._programs = programs
        self._lane = device.lane()
        self._host = host
        self._batch = on_device

    def run(self, num_rows: int) -> None:
        """Answers ``rows[:num_rows]``; see ``Runner.run``."""
        n = num_rows
        host, batch = self._host, self._batch

        def copy_in() -> None:
            batch.rows[:n].copy_(host.rows[:n], non_blocking=True)

        def compute() -> None:
            self._programs.run(n, batch)

        def copy_out() -> None:
            for name, to in host.answers.items():
                to[:n].copy_(batch.answers[name][:n], non_blocking=True)

        self._lane.run(copy_in, compute, copy_out)


class DeviceBackend:
    """A ``Backend`` over a model's weights, on devices.

    Attributes:
        name: ``torch``.
        version: torch's version.
        precision: Arithmetic of the trunk; the heads are float32.
        batch_shape: ``dynamic``.
        signature: Its inputs, outputs and state.
        num_devices: Number of devices.
        max_rows: The largest batch of a lane.
        notes: Notes for the user, a line each.
    """

    name = "torch"
    batch_shape: BatchShape = "dynamic"

    def __init__(
        self,
        source: Path | Net,
        *,
        precision: Precision,
        devices: Sequence[Device],
        max_rows: int,
        outputs: Sequence[str] | None = None,
    ) -> None:
        """Builds the network and loads its weights on every device.

        Args:
            source: As for ``load_head``.
            precision: Arithmetic of the trunk.
            devices: At least one device.
            max_rows: The largest batch of a lane.
            outputs: As for ``tengen.inference.open_backend``.

        Raises:
            UsageError: As ``load_head``.
        """
        self.version = torch.__version__
        self.precision = precision
        self.num_devices = len(devices)
        self.max_rows = max_rows
        self.notes: list[str] = []
        self._devices = devices
        # Otherwise torch rounds a float32 convolution's inputs to 10 bits of mantissa.
        # The flag is global to the process, which may have backends of both precisions;
        # in bf16 only small convolutions of heads are float32.
        torch.backends.cudnn.allow_tf32 = False
        loaded = [
            load_inference_head(source, precision, outputs, folds_norms=True)
            for _ in devices
        ]
        self._loaded = [
            LoadedHead(head.to(device.where), signature)
            for (head, signature), device in zip(loaded, devices, strict=True)
        ]
        self.signature = self._loaded[0].signature

    def bind(
        self, inputs: Arrays, outputs: Arrays, state: Arrays = NO_STATE
    ) -> TorchRunner:
        """Returns a runner over these arrays; see ``Backend.bind``."""
        return TorchRunner(self._loaded[0], inputs, outputs, state)

    def open_lanes(self, layout: RowLayout, num_rows: int) -> list[DeviceLane]:
        """Returns lanes of equal size, several for each device, ready to run.

        Blocks for about a second, while every device is prepared for the batch sizes.
        If they do not fit its memory, the lanes are halved, with a note.

        Args:
            layout: Layout of the rows.
            num_rows: Wanted rows of a lane; lanes have at most ``max_rows``.

        Raises:
            RunError: A device has no memory for the smallest batch.
        """
        fitting = [_fitting_rows.get(str(d.where), num_rows) for d in self._devices]
        wanted = rows = min(num_rows, self.max_rows, *fitting)
        lanes: list[list[DeviceLane]] = []
        while len(lanes) < len(self._devices):
            place = len(lanes)
            try:
                lanes.append(self._lanes_of(place, layout, rows))
            except torch.OutOfMemoryError:
                rows = _halved(str(self._devices[place].where), rows)
                lanes = []  # all lanes have one size, so all are made anew
        if rows < wanted:
            self.notes.append(
                f"inference.device_rows ({wanted}) do not fit the memory; batches have "
                f"{rows} rows at most"
            )
        for device in self._devices:
            # Waits for the zeros, which were written on another stream than the lanes'.
            device.synchronize()
        # The devices' lanes alternate, as self-play expects.
        return [lane for each in zip(*lanes, strict=True) for lane in each]

    def rate(self, num_rows: int, seconds: float) -> float:
        """Returns evaluations per second on the first device, without copies.

        Raises:
            torch.OutOfMemoryError: The batch needs more memory than there is.
        """
        return rate(self._loaded[0], self._devices[0], num_rows, seconds)

    def _lanes_of(self, place: int, layout: RowLayout, rows: int) -> list[DeviceLane]:
        loaded, device = self._loaded[place], self._devices[place]
        programs = Programs(loaded, device, layout, rows)
        return [
            DeviceLane(
                programs,
                device,
                place,
                Batch.beside_device(device, layout, rows, loaded.signature),
                Batch.on_device(device, layout, rows, loaded.signature),
            )
            for _ in range(_LANES_PER_DEVICE)
        ]


def _halved(where: str, rows: int) -> int:
    """Returns the rows to try after so many did not fit a device."""
    half = rows // 2
    if half < MIN_BUCKET_ROWS:
        raise RunError(
            f"device ({where}) has no memory for a batch of {rows} rows; "
            f"free some, or use a smaller net or another device"
        )
    _fitting_rows[where] = half
    return half


_TRIAL_ROWS = (128, 256, 512, 1024, 2048, 4096)
_TRIAL_S = 0.2
# Factor by which a larger batch must be faster, because it needs more games at once,
# whose trees then fit no cache: benchmarks/results/gpu.md.
_WORTHWHILE = 1.05


def open_on_devices(
    source: Path | Net, config: InferenceConfig, outputs: Sequence[str] | None = None
) -> DeviceBackend:
    """Opens a model on the GPUs of a config without ``auto``.

    Args:
        source: A model directory, or a network.
        config: A config whose devices are GPUs.
        outputs: As for ``tengen.inference.open_backend``.

    Raises:
        UsageError: A GPU is missing, or the model cannot be read.
    """
    precision: Precision = "fp32" if config.precision == "fp32" else "bf16"
    return DeviceBackend(
        source,
        precision=precision,
        devices=_devices(config),
        max_rows=config.device_rows or _TRIAL_ROWS[-1],
        outputs=outputs,
    )


def choose_on_devices(
    directory: Path, config: InferenceConfig, outputs: Sequence[str] | None = None
) -> Choice:
    """Replaces every ``auto``; see ``tengen.inference.choose``.

    Blocks for some seconds, while batches of several sizes are timed.

    Args:
        directory: A model directory.
        config: A config whose devices are GPUs.
        outputs: As for ``tengen.inference.open_backend``.

    Raises:
        UsageError: A GPU is missing, or the config has a setting for CPUs only.
    """
    for name, wanted, found in (
        ("backend", "torch", config.backend),
        ("batch_shape", "dynamic", config.batch_shape),
    ):
        if found not in ("auto", wanted):
            raise UsageError(
                f"inference.{name} ({found}) is for CPUs; set it to {wanted}, or use "
                f"--devices cpu"
            )
    precision = config.precision
    if precision == "auto":
        has_bf16 = all(device.has_bf16 for device in _devices(config))
        precision = "bf16" if has_bf16 else "fp32"
    config = dataclasses.replace(
        config, backend="torch", precision=precision, batch_shape="dynamic"
    )
    backend = open_on_devices(directory, config, outputs)
    rates: dict[int, float] = {}
    if config.device_rows == 0:
        rates = device_trial(backend)
        config = dataclasses.replace(config, device_rows=_fewest_rows(rates))
    return Choice(
        config=config,
        version=backend.version,
        is_deterministic=False,
        rows_per_s={str(rows): rate for rows, rate in rates.items()},
    )


def device_trial(backend: DeviceBackend, seconds: float = _TRIAL_S) -> dict[int, float]:
    """Returns evaluations per second of the network alone, by rows of a batch.

    Batch sizes that do not fit the device's memory are left out.

    Args:
        backend: The network.
        seconds: Seconds for each size.

    Raises:
        RunError: The smallest batch does not fit the memory.
    """
    rates: dict[int, float] = {}
    for rows in _TRIAL_ROWS:
        try:
            rates[rows] = backend.rate(rows, seconds)
        except torch.OutOfMemoryError as error:
            if rates:
                break
            raise RunError(
                f"device has no memory for a batch of {rows} rows; free some, or use "
                f"a smaller net or another device"
            ) from error
    return rates


def _fewest_rows(rates: dict[int, float]) -> int:
    best = max(rates.values())
    return min(rows for rows, rate in rates.items() if rate * _WORTHWHILE >= best)


def _devices(config: InferenceConfig) -> list[Device]:
    words = parse_devices("inference.devices", config.devices)
    return [make_device(word) for word in words]
