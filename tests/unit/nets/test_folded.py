"""Folded convolutions: which kernels they call, and with what."""

import pytest
import torch
from torch.nn import functional

from tengen.nets.modules import norm as folded
from tengen.nets.modules.norm import BoardNorm


def conv_relu(x, weight, bias, stride, padding, dilation, groups):
    """What cuDNN computes by this call."""
    return functional.conv2d(x, weight, bias, stride, padding, dilation, groups).relu()


def conv_add_relu(x, weight, z, alpha, bias, *rest):
    """What cuDNN computes by this call."""
    return (functional.conv2d(x, weight, bias, *rest) + alpha * z).relu()


@pytest.fixture
def calls(monkeypatch):
    """Kernels of cuDNN that were called, on a processor that has them."""
    found = []

    def relu(*args):
        found.append("relu")
        return conv_relu(*args)

    def add_relu(*args):
        found.append("add_relu")
        return conv_add_relu(*args)

    monkeypatch.setattr(torch, "cudnn_convolution_relu", relu)
    monkeypatch.setattr(torch, "cudnn_convolution_add_relu", add_relu)
    monkeypatch.setattr(folded, "_has_fused", lambda *args: True)
    return found


def made(num_inputs, num_outputs, side):
    torch.manual_seed(3)
    norm = BoardNorm(num_outputs, epsilon=1e-3).eval()
    with torch.no_grad():
        for tensor in (*norm.parameters(), *norm.buffers()):
            tensor.uniform_(0.5, 1.5)
    return norm, torch.randn(num_outputs, num_inputs, side, side)


@pytest.mark.parametrize("is_fused", [True, False])
@pytest.mark.parametrize("shape", [(13, 12, 3), (8, 8, 3), (5, 8, 1)])
def test_the_convolution_has_its_norm_a_residual_and_relu(request, is_fused, shape):
    """Without the kernels, as on a processor, torch's other functions are called."""
    calls = request.getfixturevalue("calls") if is_fused else []
    norm, weight = made(*shape)
    conv = norm.folded_into(weight)
    assert conv.weight.shape[1] % 8 == 0
    x = torch.randn(3, shape[0], 5, 4).contiguous(memory_format=torch.channels_last)
    residual = torch.randn(3, shape[1], 5, 4)
    with torch.inference_mode():
        plain = norm(functional.conv2d(x, weight, padding=shape[2] // 2), None)
        torch.testing.assert_close(conv(x), plain.relu(), rtol=1e-4, atol=1e-4)
        found = conv(x, residual)
    torch.testing.assert_close(found, (plain + residual).relu(), rtol=1e-4, atol=1e-4)
    assert calls == (["relu", "add_relu"] if is_fused else [])
