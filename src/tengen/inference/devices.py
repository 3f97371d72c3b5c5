"""Names of devices in settings: ``cpu``, ``cuda:0``, ``cuda:0,cuda:1``."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from tengen.errors import UsageError

__all__ = [
    "check_device_words",
    "check_num_gpus",
    "default_devices",
    "has_bfloat16",
    "has_driver",
    "parse_devices",
]

_GPU = re.compile(r"cuda:(0|[1-9]\d{0,2})")


def check_device_words(name: str, text: str) -> None:
    """Checks how devices are written, not whether the machine has them.

    Args:
        name: The field, as in the config.
        text: ``auto``, ``cpu``, or GPUs separated by commas.

    Raises:
        UsageError: The text is none of these, or names a GPU twice.
    """
    words = text.split(",")
    if words in (["auto"], ["cpu"]):
        return
    if not all(_GPU.fullmatch(word) for word in words):
        raise UsageError(
            f"{name} ({text}) must be cpu or GPUs; for example cuda:0 or cuda:0,cuda:1"
        )
    if len(set(words)) < len(words):
        raise UsageError(f"{name} ({text}) must name each GPU once; leave one out")


def parse_devices(name: str, text: str) -> tuple[str, ...]:
    """Returns the devices named in a text, and checks that the machine has them.

    Args:
        name: The field, as in the config.
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
                f"{name} ({word}) is not here, {known or 'torch sees no GPU'}; "
                f"use {'one of these' if num_gpus else '--devices cpu'}"
            )
    return words


def check_num_gpus(name: str, number: int, advice: str) -> None:
    """Checks that this machine has so many GPUs. Imports torch if the number is not 0.

    Args:
        name: The field that asks for them, as in the config.
        number: How many GPUs.
        advice: What to do where the machine has fewer.

    Raises:
        UsageError: Torch sees fewer GPUs.
    """
    if number and number > (most := _num_gpus()):
        raise UsageError(
            f"{name} ({number}) must be at most {most}, the GPUs that torch sees on "
            f"this machine; {advice}"
        )


def has_driver() -> bool:
    """Returns whether this host has a GPU's driver, without importing torch."""
    files = (Path("/dev/nvidia0"), Path("/dev/dxg"))
    return shutil.which("nvidia-smi") is not None or any(map(Path.exists, files))


def default_devices() -> str:
    """Returns the first GPU where torch sees one, else ``cpu``. Imports torch."""
    return "cuda:0" if _num_gpus() else "cpu"


def _num_gpus() -> int:
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


_WITHOUT_AVX512 = ("DEFAULT", "NO AVX", "AVX2")


def has_bfloat16() -> bool:
    """Returns whether the CPU multiplies bfloat16 in hardware, which makes it faster.

    Imports torch. False where torch is too old to tell, and where a switch such as
    ATEN_CPU_CAPABILITY keeps it from AVX-512: bfloat16 would be emulated.
    """
    import torch

    ask: Callable[[], dict[str, object]] = getattr(torch.cpu, "get_capabilities", dict)
    capabilities = ask()
    level = torch.backends.cpu.get_cpu_capability()
    if capabilities.get("architecture") == "x86_64" and level in _WITHOUT_AVX512:
        return False
    names = ("avx512_bf16", "amx_bf16", "bf16")
    return any(capabilities.get(name) for name in names)
