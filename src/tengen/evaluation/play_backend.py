"""The backend by which a model plays matches and people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tengen.config import check
from tengen.inference import (
    Backend,
    InferenceConfig,
    check_device_words,
    default_devices,
    open_backend,
    parse_devices,
)
from tengen.inference.openvino_backend import (
    ONNX_FILE,
    is_installed,
    supported_precisions,
)
from tengen.search import PlayPrecision

__all__ = ["open_for_play"]


def open_for_play(
    directory: Path,
    num_threads: int,
    *,
    outputs: Sequence[str] | None = None,
    devices: str | None = None,
    precision: PlayPrecision = "fp32",
) -> Backend:
    """Returns a model's backend for play. Blocks while the model is compiled.

    Args:
        directory: A model directory.
        num_threads: Threads that will evaluate at the same time, at least 1.
        outputs: What to answer with, as for ``open_backend``; None for all.
        devices: ``cpu`` or one GPU, ``cuda:0``. None: the CPU, or the first GPU where
            OpenVINO is not installed.
        precision: Arithmetic of the trunk where OpenVINO computes on the CPU; one that
            the CPU does not compute natively, or that only a run knows, is fp32, as is
            what torch computes in.

    Raises:
        UsageError: The model cannot be used, or the GPU is not here.
        RunError: The backend refuses the model.
    """
    # A model of a run that computes by torch has no graph, and plays so too.
    has_openvino = is_installed() and (directory / ONNX_FILE).exists()
    if devices is None:
        # Without OpenVINO torch is imported anyway, and can say what there is.
        devices = "cpu" if has_openvino else default_devices()
    else:
        _check_devices(devices)
    is_openvino = has_openvino and devices == "cpu"
    is_native = is_openvino and precision in supported_precisions()
    config = InferenceConfig(
        devices=devices,
        backend="openvino" if is_openvino else "torch",
        precision=precision if is_native and precision != "run" else "fp32",
        batch_shape="dynamic",
    )
    return open_backend(directory, config, num_threads, outputs=outputs)


def _check_devices(devices: str) -> None:
    check_device_words("devices", devices)
    is_one = devices != "auto" and "," not in devices
    check(is_one, "devices", devices, "must be cpu or one GPU, as cuda:0; name one")
    parse_devices("devices", devices)
