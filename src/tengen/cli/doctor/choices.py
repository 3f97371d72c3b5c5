"""What a run would compute with here, by the functions that choose it in a run."""

from __future__ import annotations

import importlib

from tengen.cli.doctor.machine import Finding
from tengen.distribution import pip_install
from tengen.errors import TengenError
from tengen.inference.devices import default_devices, has_bfloat16, has_driver
from tengen.inference.openvino_backend import is_installed, supported_precisions

__all__ = ["check_choices"]


def check_choices() -> dict[str, Finding]:
    """Returns what inference and learning use by default; imports torch."""
    try:
        importlib.import_module("torch")
    except Exception:  # the line of torch says why
        unknown = Finding("unknown without torch", "bad", "see torch")
        return {"device": unknown, "inference": unknown, "learning": unknown}
    device = default_devices()
    return {
        "device": _device(device),
        "inference": _inference(device),
        "learning": _learning(device),
    }


def _device(device: str) -> Finding:
    import torch

    cuda = torch.cuda
    if device != "cpu":
        names = [cuda.get_device_name(i) for i in range(cuda.device_count())]
        return Finding(f"{device}, the first of {', '.join(names)}")
    is_driven = has_driver()
    if is_driven and torch.version.cuda is None:
        return Finding(
            "cpu: there is a GPU, and this torch is built without CUDA",
            "absent",
            f"uninstall torch, then {pip_install('torch')}, from an index whose torch "
            f"has CUDA, such as PyPI",
        )
    if is_driven:
        return Finding(
            "cpu: there is a driver, and torch sees no GPU",
            "absent",
            "see nvidia-smi and CUDA_VISIBLE_DEVICES",
        )
    return Finding("cpu: torch sees no GPU")


def _inference(device: str) -> Finding:
    if device != "cpu":
        return Finding("torch on the GPU, bf16 where the GPU computes in it, else fp32")
    if not is_installed():
        return Finding(
            "torch, fp32 or bf16 as a trial finds faster, for OpenVINO is not here",
            "absent",
            pip_install("openvino"),
        )
    try:
        native = supported_precisions()
    except (TengenError, RuntimeError) as error:
        return Finding(
            f"OpenVINO fails ({error})", "bad", "set inference.backend=torch"
        )
    rest = [name for name in ("bf16", "int8") if name not in native]
    why = f"; the processor computes no {' or '.join(rest)} itself" if rest else ""
    if len(native) == 1:
        return Finding(f"OpenVINO in {native[0]}{why}")
    return Finding(
        f"OpenVINO in {', '.join(native)}, what a run's trial finds worth its rounding"
        + why
    )


def _learning(device: str) -> Finding:
    if device != "cpu":
        return Finding(f"torch on {device}")
    if has_bfloat16():
        return Finding("torch on the processor, which multiplies bfloat16")
    return Finding("torch on the processor in fp32, which has no bfloat16 of its own")
