"""Inference on GPUs by torch: CUDA graphs for batch sizes, and lanes of batches.

Self-play uses lanes, which many threads fill together (core/inference/shared_port.h).
Other callers, which have few rows, bind a runner as with other backends.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from tengen.errors import RunError
from tengen.inference.backend import NO_STATE, Arrays, RowLayout
from tengen.inference.config import (
    BatchShape,
    InferenceConfig,
    Precision,
    parse_devices,
)
from tengen.inference.device import (
    MIN_BUCKET_ROWS,
    Batch,
    CudaDevice,
    Device,
    Programs,
    rate,
)
from tengen.inference.torch_backend import (
    LoadedHead,
    TorchRunner,
    load_head,
)
from tengen.nets import Net

__all__ = [
    "DeviceBackend",
    "DeviceLane",
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
            load_head(source, outputs, precision=precision, folds_norms=True)
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

    def rates(self) -> dict[int, float]:
        """Returns evaluations per second of the network alone, by rows of a batch.

        Blocks for some seconds. Batches that do not fit the first device are left out.

        Raises:
            RunError: The smallest batch does not fit the memory.
        """
        rates: dict[int, float] = {}
        for rows in _TRIAL_ROWS:
            try:
                rates[rows] = self.rate(rows, _TRIAL_S)
            except torch.OutOfMemoryError as error:
                if rates:
                    break
                raise RunError(
                    f"device has no memory for a batch of {rows} rows; free some, or "
                    f"use a smaller net or another device"
                ) from error
        return rates

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


def open_on_devices(
    source: Path | Net, config: InferenceConfig, outputs: Sequence[str] | None = None
) -> DeviceBackend:
    """Opens a model on the GPUs of a config, in bf16 if ``precision`` is auto.

    GPUs without bf16 then compute in fp32.

    Args:
        source: A model directory, or a network.
        config: A config whose devices are GPUs.
        outputs: As for ``tengen.inference.open_backend``.

    Raises:
        UsageError: A GPU is missing, or the model cannot be read.
    """
    devices = _devices(config)
    has_bf16 = config.precision != "auto" or all(d.has_bf16 for d in devices)
    is_bf16 = config.precision != "fp32" and has_bf16
    return DeviceBackend(
        source,
        precision="bf16" if is_bf16 else "fp32",
        devices=devices,
        max_rows=config.device_rows or _TRIAL_ROWS[-1],
        outputs=outputs,
    )


def _devices(config: InferenceConfig) -> list[Device]:
    words = parse_devices("inference.devices", config.devices)
    return [CudaDevice(word) for word in words]
