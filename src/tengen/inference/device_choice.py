"""Opens a model on GPUs, and chooses the settings for GPUs by measurement.

A GPU uses other kernels for other batch sizes, whose answers have other bits, and
padding every batch to one size would cost the speed that several sizes gain. So nothing
is probed here, and a run on a GPU records that it is not deterministic.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import torch

from tengen.errors import RunError, UsageError
from tengen.inference.choice import Choice
from tengen.inference.config import InferenceConfig, Precision
from tengen.inference.device import Device, make_device
from tengen.inference.device_backend import DeviceBackend
from tengen.inference.devices import parse_devices
from tengen.nets import Net

__all__ = ["choose_on_devices", "device_trial", "open_on_devices"]

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
