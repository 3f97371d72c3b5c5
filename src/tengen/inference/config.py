"""Settings of inference, and parsing of device names such as ``cuda:0``."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.errors import UsageError

_GPU = re.compile(r"cuda:(0|[1-9]\d{0,2})")
_WITHOUT_AVX512 = ("DEFAULT", "NO AVX", "AVX2")

BackendName = Literal["openvino", "torch", "native"]
Precision = Literal["fp32", "bf16", "int8"]
BatchShape = Literal["dynamic", "fixed"]


@dataclass(frozen=True, kw_only=True)
class InferenceConfig:
    """Settings of inference. When a run starts, ``choose`` resolves every ``auto``."""

    devices: str = "auto"
    """Devices that evaluate models: cpu, or GPUs such as cuda:0 or cuda:0,cuda:1; auto
    uses the first GPU that torch detects, or else the CPU."""
    backend: Literal["auto", "openvino", "torch", "native"] = "auto"
    """The library that evaluates models. auto uses torch on a GPU; on a CPU, the core
    itself (native) for networks that it evaluates, else OpenVINO if it is installed,
    else torch."""
    precision: Literal["auto", "fp32", "bf16", "int8"] = "auto"
    """Precision of the network's trunk. On a CPU, auto uses a lower precision only if a
    trial run shows that it is clearly faster; on a GPU, auto uses bf16 if the GPU
    supports it, else fp32. int8 needs OpenVINO; a model whose int8 errors are too large
    is evaluated in bf16, or in fp32 if the CPU does not support bf16."""
    batch_shape: Literal["auto", "dynamic", "fixed"] = "auto"
    """dynamic: a batch has about as many rows as the caller requests. fixed: every
    batch is split or padded to ``batch_rows``. On a CPU, auto uses dynamic if a probe
    finds that outputs then do not depend on the batch, else fixed; on a GPU, auto uses
    dynamic."""
    batch_rows: int = bounded(8, 1, 4096, "8 to 32 suits a CPU")
    """Number of rows of a fixed batch, and of batches in trial runs; 1 to 4096."""
    device_rows: int = bounded(0, 0, 65536, "use 0 for the result of a trial")
    """Maximum number of rows of a batch on a GPU, 0 to 65536. With 0, a trial run finds
    the smallest batch size that is nearly as fast as the fastest."""
    min_rows: int = bounded(1, 1, 4096, "use 1")
    """For the role inference: minimum number of rows of a batch, 1 to 4096. With 1, an
    idle device evaluates pending rows immediately. A larger number increases the size
    of batches and the latency."""
    max_wait_ms: float = bounded(2.0, 0, 10_000, "use 2")
    """For the role inference: maximum milliseconds that a request waits for
    ``min_rows``, 0 to 10,000."""

    def __post_init__(self) -> None:
        """Checks the device names, the ranges, and the precision.

        Raises:
            UsageError: A field is unknown or out of its range, or the backend is torch
                with int8.
        """
        check_fields(self)
        check_device_words("devices", self.devices)
        check(
            self.backend != "native" or self.precision in ("auto", "fp32"),
            "precision",
            self.precision,
            "must be fp32 with inference.backend=native; leave it out",
        )
        is_for_torch = self.backend == "torch" or self.is_on_gpu
        check(
            not (is_for_torch and self.precision == "int8"),
            "precision",
            self.precision,
            "must be fp32 or bf16 with torch; install openvino or set one of them",
        )

    @property
    def has_auto(self) -> bool:
        """Whether devices, backend, precision or batch shape is ``auto``."""
        chosen = (self.devices, self.backend, self.precision, self.batch_shape)
        return "auto" in chosen

    @property
    def is_on_gpu(self) -> bool:
        """Whether the devices are GPUs; undefined if ``devices`` is ``auto``."""
        return self.devices.startswith("cuda")


def check_device_words(name: str, text: str) -> None:
    """Checks the syntax of a list of devices, not whether the devices exist.

    Args:
        name: The setting's name, for error messages.
        text: ``auto``, ``cpu``, or GPUs separated by commas.

    Raises:
        UsageError: ``text`` is anything else, or contains a GPU twice.
    """
    words = text.split(",")
    if words in (["auto"], ["cpu"]):
        return
    if not all(_GPU.fullmatch(word) for word in words):
        raise UsageError(
            f"{name} ({text}) must be cpu or GPUs; for example cuda:0 or cuda:0,cuda:1"
        )
    if len(set(words)) < len(words):
        raise UsageError(f"{name} ({text}) must name each GPU only once; remove one")


def parse_devices(name: str, text: str) -> tuple[str, ...]:
    """Parses a list of devices and checks that this machine has them.

    Args:
        name: The setting's name, for error messages.
        text: ``cpu`` or GPUs separated by commas; not ``auto``.

    Raises:
        UsageError: The machine does not have one of the GPUs.
    """
    words = tuple(text.split(","))
    if words == ("cpu",):
        return words
    num_gpus = _num_gpus()
    for word in words:
        if int(word.removeprefix("cuda:")) >= num_gpus:
            known = f"torch sees cuda:0 to cuda:{num_gpus - 1}" if num_gpus else ""
            raise UsageError(
                f"{name} ({word}) does not exist, {known or 'torch sees no GPU'}; use "
                f"{'one of these' if num_gpus else '--devices cpu'}"
            )
    return words


def check_num_gpus(name: str, number: int, advice: str) -> None:
    """Checks that this machine has enough GPUs. Imports torch unless ``number`` is 0.

    Args:
        name: The name of the setting that requests GPUs, for error messages.
        number: Required number of GPUs.
        advice: Advice for the error message.

    Raises:
        UsageError: torch detects fewer GPUs.
    """
    if number and number > (most := _num_gpus()):
        raise UsageError(
            f"{name} ({number}) must be at most {most}, the GPUs that torch finds "
            f"here; {advice}"
        )


def has_driver() -> bool:
    """Returns whether this host has a GPU driver, without importing torch."""
    files = (Path("/dev/nvidia0"), Path("/dev/dxg"))
    return shutil.which("nvidia-smi") is not None or any(map(Path.exists, files))


def default_devices() -> str:
    """Returns the first GPU that torch detects, or else ``cpu``. Imports torch."""
    return "cuda:0" if _num_gpus() else "cpu"


def _num_gpus() -> int:
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def has_bfloat16() -> bool:
    """Returns whether the CPU multiplies bfloat16 numbers in hardware.

    Imports torch. Returns false if torch is too old to report this, or if a setting
    such as ATEN_CPU_CAPABILITY disables AVX-512, because torch then emulates bfloat16.
    """
    import torch

    ask: Callable[[], dict[str, object]] = getattr(torch.cpu, "get_capabilities", dict)
    capabilities = ask()
    level = torch.backends.cpu.get_cpu_capability()
    if capabilities.get("architecture") == "x86_64" and level in _WITHOUT_AVX512:
        return False
    names = ("avx512_bf16", "amx_bf16", "bf16")
    return any(capabilities.get(name) for name in names)
