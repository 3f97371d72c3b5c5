import dataclasses
import importlib.util
import shutil
import sys
import threading

import numpy as np
import onnx
import pytest

from tengen.errors import RunError, UsageError
from tengen.inference import (
    InferenceConfig,
    allocate,
    check_machine,
    choose,
    open_backend,
    probe,
)
from tengen.inference.openvino_backend import _core, supported_precisions
from tengen.inference.torch_backend import load_head
from tests.refusals import refused

HAS_OPENVINO = importlib.util.find_spec("openvino") is not None
pytestmark = pytest.mark.precision
needs_openvino = pytest.mark.skipif(not HAS_OPENVINO, reason="openvino is not here")
NUM_ACTIONS = 25


def opened(
    model, backend="openvino", precision="fp32", batch_shape="dynamic", num_threads=1
):
    if backend == "openvino" and precision not in supported_precisions():
        pytest.skip(f"this CPU has no {precision}")
    config = InferenceConfig(
        backend=backend, precision=precision, batch_shape=batch_shape
    )
    return open_backend(model, config, num_threads)


def answers(backend, planes, num_rows):
    """Evaluates all rows in order, ``num_rows`` a batch, in fresh buffers.

    The buffers hold at least as many rows as those of a run.
    """
    capacity = max(num_rows, InferenceConfig().batch_rows)
    rows = np.zeros((capacity, *planes.shape[1:]), np.float32)
    policy = np.full((capacity, NUM_ACTIONS), np.nan, np.float32)
    value = np.full(capacity, np.nan, np.float32)
    runner = backend.bind({"planes": rows}, {"policy": policy, "value": value})
    policies, values = [], []
    for start in range(0, len(planes), num_rows):
        n = min(num_rows, len(planes) - start)
        rows[:n] = planes[start : start + n]
        runner.run(n)
        policies.append(policy[:n].copy())
        values.append(value[:n].copy())
    return np.concatenate(policies), np.concatenate(values)


def torch_answers(model, planes):
    import torch

    with torch.inference_mode():
        policy, value = load_head(model).head(torch.from_numpy(planes))
    return policy.numpy(), value.numpy()


@pytest.mark.parametrize(
    ("backend", "precision", "tolerance"),
    [
        pytest.param("openvino", "fp32", 2e-5, marks=needs_openvino),
        pytest.param("openvino", "bf16", 0.05, marks=needs_openvino),
        ("torch", "fp32", 2e-5),
        ("torch", "bf16", 0.05),
    ],
)
@pytest.mark.parametrize("num_rows", [1, 7, 60])
def test_a_backend_answers_as_torch_does(
    model, planes, backend, precision, tolerance, num_rows
):
    found = answers(opened(model, backend, precision), planes, num_rows)
    for got, wanted in zip(found, torch_answers(model, planes), strict=True):
        assert wanted.std() > tolerance / 10
        np.testing.assert_allclose(got, wanted, atol=tolerance, rtol=0)


@needs_openvino
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_rows_neighbours_and_batches_do_not_change_bits(model, planes, precision):
    """In the batch shape that a run takes: fixed where AVX is missing."""
    if precision not in supported_precisions():
        pytest.skip(f"this CPU has no {precision}")
    asked = InferenceConfig(backend="openvino", precision=precision, batch_shape="auto")
    choice = choose(model, asked, {"planes": planes}, 1)
    assert choice.is_deterministic
    backend = open_backend(model, choice.config, 1)
    policy, value = answers(backend, planes, 1)
    for num_rows in (2, 5, asked.batch_rows):
        found = answers(backend, planes[::-1].copy(), num_rows)
        assert found[0][::-1].tobytes() == policy.tobytes()
        assert found[1][::-1].tobytes() == value.tobytes()


@needs_openvino
def test_two_threads_on_one_model_get_the_bits_of_one(model, planes):
    alone = answers(opened(model), planes, 8)
    backend = opened(model, num_threads=2)
    differing = []

    def work(num_rows):
        for _ in range(20):
            found = answers(backend, planes, num_rows)
            same = [
                a.tobytes() == b.tobytes() for a, b in zip(found, alone, strict=True)
            ]
            differing.append(same.count(False))

    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert differing == [0] * 40


def same_in_batches_of_any_size(fixed, planes):
    policy, value = answers(fixed, planes, 8)
    found = [answers(fixed, planes, num_rows) for num_rows in (1, 5, 60)]
    return all(
        one[0].tobytes() == policy.tobytes() and one[1].tobytes() == value.tobytes()
        for one in found
    )


@needs_openvino
def test_a_fixed_batch_makes_bits_independent_of_the_callers_batch(model, planes):
    fixed = opened(model, "openvino", batch_shape="fixed")
    result = probe(fixed, {"planes": planes}, batch_rows=8, num_threads=2)
    assert result.num_rows == 2 * 4 * 60
    assert result.is_deterministic
    assert same_in_batches_of_any_size(fixed, planes)


def test_a_probe_tells_whether_a_fixed_batch_of_torch_is_enough(model, planes):
    # On some processors its bits depend on the row's place in the batch.
    fixed = opened(model, "torch", batch_shape="fixed")
    result = probe(fixed, {"planes": planes}, batch_rows=8, num_threads=2)
    assert result.is_deterministic == same_in_batches_of_any_size(fixed, planes)
    policy, _ = answers(fixed, planes, 8)
    np.testing.assert_allclose(policy, torch_answers(model, planes)[0], atol=2e-5)


@needs_openvino
def test_one_model_serves_another_board_size(model):
    planes = np.ones((3, 4, 7, 6), np.float32)
    policy = np.zeros((3, 42), np.float32)
    value = np.zeros(3, np.float32)
    opened(model).bind({"planes": planes}, {"policy": policy, "value": value}).run(3)
    np.testing.assert_allclose(policy, torch_answers(model, planes)[0], atol=2e-5)


@needs_openvino
def test_a_runner_keeps_its_buffers_alive(model):
    backend = opened(model)
    runners = [
        backend.bind(
            {"planes": np.ones((64, 4, 5, 5), np.float32)},
            allocate(backend.signature.outputs, 64),
        )
        for _ in range(8)
    ]
    for num_rows in (64, 1, 63):
        for runner in runners:
            runner.run(num_rows)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("planes", lambda array: array.astype(np.float64)),
        ("planes", lambda array: array[:, :, :, 0]),
        ("planes", lambda array: array.swapaxes(2, 3)),
        ("policy", lambda array: array[:3]),
        ("value", lambda array: array[:, None]),
    ],
)
def test_wrong_buffers_are_refused(model, name, change):
    buffers = {
        "planes": np.zeros((4, 4, 5, 5), np.float32),
        "policy": np.zeros((4, NUM_ACTIONS), np.float32),
        "value": np.zeros(4, np.float32),
    }
    buffers[name] = change(buffers[name])
    planes = buffers.pop("planes")
    with refused(ValueError, name):
        opened(model, "torch").bind({"planes": planes}, buffers)


def test_a_backend_that_is_not_installed_is_refused(model, monkeypatch):
    _core.cache_clear()
    monkeypatch.setitem(sys.modules, "openvino", None)
    config = InferenceConfig(
        backend="openvino", precision="fp32", batch_shape="dynamic"
    )
    with refused(UsageError, "inference.backend (openvino)"):
        open_backend(model, config, 1)


@needs_openvino
@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_a_precision_that_the_cpu_lacks_is_refused(model, monkeypatch, precision):
    """int8 too, though this model would play in floats where the CPU had it."""
    monkeypatch.setattr(
        "tengen.inference.openvino_backend.supported_precisions", lambda: ("fp32",)
    )
    config = InferenceConfig(
        backend="openvino", precision=precision, batch_shape="dynamic"
    )
    wanted = f"inference.precision ({precision})"
    with refused(UsageError, wanted):
        open_backend(model, config, 1)
    with refused(UsageError, wanted):
        check_machine(config)
    check_machine(dataclasses.replace(config, precision="auto"))
    check_machine(dataclasses.replace(config, precision="fp32"))
    check_machine(dataclasses.replace(config, backend="torch", precision="bf16"))


@needs_openvino
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_graph_with_weights_in_other_files_is_refused(model, tmp_path, is_nested):
    copy = tmp_path / "model"
    shutil.copytree(model, copy)
    graph = onnx.load(str(copy / "model.onnx"))
    tensor = graph.graph.initializer[0]
    if is_nested:
        node = graph.graph.node.add(op_type="Constant", output=["extra"])
        node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
        tensor = node.attribute[0].t
        tensor.name, tensor.data_type = "extra", onnx.TensorProto.FLOAT
        tensor.dims.append(1)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    (copy / "model.onnx").write_bytes(graph.SerializeToString())
    with refused(UsageError, "tensors"):
        opened(copy)


@needs_openvino
def test_a_damaged_graph_is_refused_by_name(model, tmp_path):
    copy = tmp_path / "model"
    shutil.copytree(model, copy)
    (copy / "model.onnx").write_bytes((model / "model.onnx").read_bytes()[:-900])
    with refused(RunError, "model.onnx", "OpenVINO"):
        opened(copy)


@pytest.mark.parametrize("name", ["meta.json", "weights.safetensors"])
def test_a_damaged_torch_model_is_refused_by_name(model, tmp_path, name):
    copy = tmp_path / "model"
    shutil.copytree(model, copy)
    (copy / name).write_bytes((copy / name).read_bytes()[:-3])
    with refused(UsageError, "cannot be built"):
        opened(copy, "torch")
    (copy / name).unlink()
    with refused(UsageError, "cannot be built"):
        opened(copy, "torch")
