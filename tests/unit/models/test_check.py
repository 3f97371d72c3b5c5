from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tengen.errors import RunError
from tengen.inference import InferenceConfig, open_backend
from tengen.models import check as tolerances
from tengen.models import check_export
from tests.refusals import refused

pytest.importorskip("openvino")

GOLDEN = Path(__file__).parents[2] / "golden" / "models"
OPENVINO = InferenceConfig(
    backend="openvino", precision="fp32", batch_shape="dynamic", batch_rows=8
)


@pytest.fixture
def check(features, random_planes):
    planes = random_planes(features, 200)

    def check(path, config=OPENVINO):
        backend = open_backend(path, config, num_threads=1)
        return check_export(path, backend, {"planes": planes})

    return check


def change(path, edit):
    """Edits the initializers of ``model.onnx`` like a faulty export."""
    proto = onnx.load(path / "model.onnx")
    for item in proto.graph.initializer:
        array = edit(item.name, onnx.numpy_helper.to_array(item).copy())
        item.CopyFrom(onnx.numpy_helper.from_array(array, item.name))
    onnx.save(proto, path / "model.onnx")


def test_a_good_export_passes_with_small_errors(publish, check):
    result = check(publish().path)
    assert result.num_rows == 200
    for name in ("policy", "value"):
        assert result.errors[name] < 1e-4 < result.spreads[name]
    assert result.max_probability_error < 1e-4


def test_bf16_passes_with_its_own_tolerance(publish, check):
    bf16 = dataclasses.replace(OPENVINO, backend="torch", precision="bf16")
    result = check(publish().path, bf16)
    assert 1e-5 < result.errors["policy"] < 0.5


BREAKS: dict[str, Callable[[str, Any], Any]] = {
    "a norm left out": lambda name, array: (
        np.ones_like(array) if name == "tip.weight" else array
    ),
    "a kernel transposed": lambda name, array: (
        array.swapaxes(2, 3).copy() if name == "stem.weight" else array
    ),
    "the loss for the win": lambda name, array: (
        array[::-1].copy() if name.startswith("value_head.out") else array
    ),
    "not a number": lambda name, array: array * np.float32("nan"),
}


@pytest.mark.parametrize("name", BREAKS)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_wrong_export_is_refused(name, precision, publish, check, monkeypatch):
    path = publish().path
    change(path, BREAKS[name])
    # bf16's wider tolerance must find the same faults; fp32 runs on any CPU.
    monkeypatch.setattr(
        "tengen.models.check._TOLERANCES",
        {"fp32": tolerances._TOLERANCES[precision]},
    )
    with refused(RunError, "not published"):
        check(path)


def test_a_network_of_no_numbers_is_not_blamed_on_its_export(publish, features):
    path = publish().path
    backend = open_backend(path, OPENVINO, num_threads=1)
    shape = (8, features.num_planes, features.height, features.width)
    nowhere = np.zeros(shape, np.float32)  # plane 0 marks no cell as on the board
    with refused(RunError, "network (", "finite"):
        check_export(path, backend, {"planes": nowhere})


def test_a_constant_answer_passes(publish, features):
    path = publish().path
    backend = open_backend(path, OPENVINO, num_threads=1)
    shape = (8, features.num_planes, features.height, features.width)
    result = check_export(path, backend, {"planes": np.ones(shape, np.float32)})
    assert result.spreads["value"] < 1e-6


def test_other_outputs_are_compared_by_name(tmp_path):
    """A network without a board can have outputs of any name."""
    path = tmp_path / "model"
    shutil.copytree(GOLDEN / "schema_2_cartpole", path)
    rows = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)
    inputs = {"observation": rows}
    result = check_export(path, open_backend(path, OPENVINO, 1), inputs)
    assert result.errors.keys() == {"policy", "value"}
    assert result.errors["policy"] < 1e-5 < result.spreads["policy"]
    change(path, lambda name, array: array * (1.2 if name == "policy.4.weight" else 1))
    with refused(RunError, "policy_error"):
        check_export(path, open_backend(path, OPENVINO, 1), inputs)


def test_weights_of_another_model_are_refused(publish, check):
    path = publish(0).path
    (path / "model.onnx").write_bytes((publish(1).path / "model.onnx").read_bytes())
    with refused(RunError, "policy_error"):
        check(path)


def test_a_failed_check_publishes_nothing(publish, check, candidates):
    def break_and_check(path):
        change(path, BREAKS["a norm left out"])
        check(path)

    with refused(RunError, "not published"):
        publish(check=break_and_check)
    assert list(candidates.path.iterdir()) == []
