import pytest

from tengen.errors import UsageError
from tengen.inference import InferenceConfig
from tengen.inference.config import (
    check_device_words,
    default_devices,
    has_bfloat16,
    parse_devices,
)
from tests.refusals import refused


@pytest.mark.parametrize("text", ["auto", "cpu", "cuda:0", "cuda:3,cuda:0"])
def test_words_that_are_devices(text):
    check_device_words("devices", text)
    assert InferenceConfig(devices=text).is_on_gpu is text.startswith("cuda")


@pytest.mark.parametrize(
    "text", ["", "gpu", "cuda", "cuda:", "cuda:-1", "cuda:01", "cpu,cuda:0", "cuda:0,"]
)
def test_other_words_are_refused(text):
    with refused(UsageError, "devices ("):
        InferenceConfig(devices=text)


def test_a_gpu_named_twice_is_refused():
    with refused(UsageError, "once"):
        check_device_words("devices", "cuda:1,cuda:1")


@pytest.mark.parametrize(
    ("num_gpus", "message"),
    [
        (0, "devices (cuda:0) does not exist, torch sees no GPU; use --devices cpu"),
        (1, "devices (cuda:1) does not exist, torch sees cuda:0 to cuda:0; use one"),
    ],
)
def test_an_absent_gpu_is_refused(give_gpus, num_gpus, message):
    give_gpus(num_gpus)
    with refused(UsageError, message):
        parse_devices("devices", "cuda:0,cuda:1")


def test_devices_that_are_here(give_gpus):
    give_gpus(2)
    assert parse_devices("devices", "cuda:1,cuda:0") == ("cuda:1", "cuda:0")
    assert parse_devices("devices", "cpu") == ("cpu",)
    assert default_devices() == "cuda:0"
    give_gpus(0)
    assert parse_devices("devices", "cpu") == ("cpu",)
    assert default_devices() == "cpu"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"backend": "torch", "precision": "int8"},
            "precision (int8) must be fp32 or bf16 with torch; install openvino or",
        ),
        (
            {"devices": "cuda:0", "precision": "int8"},
            "precision (int8) must be fp32 or",
        ),
    ],
)
def test_a_config_is_checked_where_it_is_built(fields, message):
    with refused(UsageError, message):
        InferenceConfig(**fields)


@pytest.mark.parametrize(
    ("architecture", "level", "is_native"),
    [
        ("x86_64", "AVX512", True),
        ("x86_64", "AVX2", False),
        ("x86_64", "DEFAULT", False),
        ("aarch64", "DEFAULT", True),
    ],
)
def test_bfloat16_that_torch_would_emulate_is_not_used(
    monkeypatch, architecture, level, is_native
):
    """ATEN_CPU_CAPABILITY keeps torch from instructions that the processor has."""
    import torch

    words = {"architecture": architecture, "avx512_bf16": True}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: words, raising=False)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: level)
    assert has_bfloat16() is is_native
