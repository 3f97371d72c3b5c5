"""Inference on GPUs with torch, with CUDA graphs and several batches in flight.

Self-play uses lanes, which many threads fill together (core/inference/shared_port.h).
Other callers have few rows, so they bind a runner, as with other backends.
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

_LANES_PER_DEVICE = 4
"""Number of lanes per device: one is filled, one waits, one computes, one is read."""

_fitting_rows: dict[str, int] = {}
"""For each device that ran out of memory, the batch size that fitted its memory."""


class DeviceLane:
    """A ``Lane`` of a device, with the buffers of one batch. Used by one thread.

    Attributes:
        rows: ``[N, layout.num_bytes]`` uint8, the rows to evaluate.
        outputs: The network's outputs, by their names in the backend's signature.
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
        """Evaluates the first ``num_rows`` rows; see ``Runner.run``."""
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
    """A ``Backend`` that runs a model on one or more devices.

    Attributes:
        name: ``torch``.
        version: torch's version.
        precision: Precision of the trunk; the heads compute in float32.
        batch_shape: ``dynamic``.
        signature: The network's inputs, requested outputs and state.
        num_devices: Number of devices.
        max_rows: Maximum number of rows in a lane's batch.
        notes: Messages for the user, one line per message.
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
            precision: Precision of the trunk.
            devices: The devices that evaluate the model, at least one.
            max_rows: Maximum number of rows in a lane's batch.
            outputs: As for ``tengen.inference.open_backend``.

        Raises:
            UsageError: As for ``load_head``.
        """
        self.version = torch.__version__
        self.precision = precision
        self.num_devices = len(devices)
        self.max_rows = max_rows
        self.notes: list[str] = []
        self._devices = devices
        # With TF32, torch rounds inputs of float32 convolutions to 10 mantissa bits.
        # The flag also affects the bf16 backends of this process, but only in the small
        # convolutions of their heads.
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
        """Returns a runner over the given arrays; see ``Backend.bind``."""
        return TorchRunner(self._loaded[0], inputs, outputs, state)

    def open_lanes(self, layout: RowLayout, num_rows: int) -> list[DeviceLane]:
        """Returns lanes of equal size, several per device.

        Blocks for about a second, to record a program per batch size on every device.
        If a device has too little memory, halves the size of all lanes and adds a note.

        Args:
            layout: Format of the rows.
            num_rows: Desired number of rows per lane, at most ``max_rows``.

        Raises:
            RunError: A device has too little memory for the smallest batch.
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
                lanes = []  # lanes of all devices must have equal sizes
        if rows < wanted:
            self.notes.append(
                f"inference.device_rows ({wanted}) exceeds the memory; "
                f"batches have at most {rows} rows"
            )
        for device in self._devices:
            # Wait until the buffers are zeroed, which happens on another stream.
            device.synchronize()
        # Alternate the lanes of the devices, as self-play expects.
        return [lane for each in zip(*lanes, strict=True) for lane in each]

    def rate(self, num_rows: int, seconds: float) -> float:
        """Measures the network's rows per second on the first device, without copies.

        Raises:
            torch.OutOfMemoryError: The device has too little memory for ``num_rows``.
        """
        return rate(self._loaded[0], self._devices[0], num_rows, seconds)

    def rates(self) -> dict[int, float]:
        """Measures the network's rows per second, by batch size, without copies.

        Blocks for some seconds. Omits batch sizes that do not fit the first device.

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
                    f"device (out of memory) cannot hold a batch of {rows} rows; free "
                    "memory, or use a smaller network or another device"
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
    """Returns half of ``rows``, to retry after a device has run out of memory."""
    half = rows // 2
    if half < MIN_BUCKET_ROWS:
        raise RunError(
            f"device ({where}) has no memory for a batch of {rows} rows; free some, or "
            "use a smaller network or another device"
        )
    _fitting_rows[where] = half
    return half


_TRIAL_ROWS = (128, 256, 512, 1024, 2048, 4096)
_TRIAL_S = 0.2


def open_on_devices(
    source: Path | Net, config: InferenceConfig, outputs: Sequence[str] | None = None
) -> DeviceBackend:
    """Opens a model on the GPUs that an inference config lists.

    If ``precision`` is auto, uses bf16, or fp32 if a GPU does not support bf16.

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
