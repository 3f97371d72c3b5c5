import dataclasses
import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from tengen.config import to_dict
from tengen.errors import RunError, UsageError
from tengen.inference import InferenceConfig, open_backend
from tengen.inference.openvino_backend import float_precision, has_int8_graph
from tengen.models import (
    INT8_FILE,
    Int8Check,
    can_quantise,
    load_model,
    quantise,
)
from tengen.models.check import evaluate
from tengen.models.int8_graph import int8_graph, peak_graph
from tengen.nets import MlpConfig, ResNetConfig
from tengen.tensors import BoardSpec
from tests.refusals import refused
from tests.unit.models.conftest import VECTORS, signature_of

sys.path.insert(0, str(Path(__file__).parents[2] / "oracle"))
import int8_resnet

pytest.importorskip("openvino")
pytestmark = [
    pytest.mark.precision,
    pytest.mark.skipif(not can_quantise(), reason="this CPU has no int8"),
]

FEATURES = BoardSpec(
    num_planes=4, height=6, width=5, num_actions=30, policy_layout="cells"
)
CONFIG = ResNetConfig(num_blocks=3, num_channels=16, head_channels=8)
POOLS = [CONFIG.pools(index) for index in range(CONFIG.num_blocks)]
INT8 = InferenceConfig(backend="openvino", precision="int8", batch_shape="dynamic")


@pytest.fixture
def weights(random_weights):
    return random_weights(FEATURES, CONFIG, 3)


@pytest.fixture
def planes(random_planes):
    return random_planes(FEATURES, 96)


@pytest.fixture
def made(tmp_path, exporter):
    """Returns a function that writes the files that ``quantise`` reads."""

    def made(weights):
        signature = signature_of(FEATURES, CONFIG)
        graph = exporter.export(signature, CONFIG, weights)
        (tmp_path / "model.onnx").write_bytes(graph)
        meta = {"net": to_dict(CONFIG), "signature": to_dict(signature)}
        (tmp_path / "meta.json").write_text(json.dumps(meta))
        return tmp_path

    return made


def rms(errors):
    return float(np.sqrt(np.mean(np.square(errors))))


@pytest.fixture
def floats_in_fp32(monkeypatch):
    """The float parts in fp32, so that nothing but int8 itself can differ."""
    monkeypatch.setattr(
        "tengen.inference.openvino_backend.float_precision", lambda: "fp32"
    )


@pytest.mark.usefixtures("floats_in_fp32")
def test_an_int8_model_answers_as_integers_do(made, weights, planes):
    directory = made(weights)
    quantise(directory, planes)
    calibrating = planes[np.arange(len(planes)) % 3 != 0]
    exact_policy, exact_value, _ = int8_resnet.answer(weights, planes, [], POOLS)
    peaks = int8_resnet.answer(weights, calibrating, [], POOLS)[2]
    policy, value, _ = int8_resnet.answer(weights, planes, peaks, POOLS)
    found = evaluate(open_backend(directory, INT8, 1), {"planes": planes})
    # Float rounding can change an integer by one, far less than int8's own error.
    for got, wanted, exact in zip(
        found.values(), (policy, value), (exact_policy, exact_value), strict=True
    ):
        assert rms(wanted - exact) > 1e-4
        assert rms(got - wanted) < 0.1 * rms(wanted - exact)


@pytest.mark.usefixtures("floats_in_fp32")
def test_equal_weights_do_not_saturate_without_vnni(made, weights, planes):
    """Weights that are all as large as they get: each pair of products is the worst."""
    for block in range(3):
        for conv in ("conv1", "conv2"):
            weight = weights[f"blocks.{block}.{conv}.weight"]
            sizes = np.resize([0.002, -0.001, 0.003], len(weight))
            weight[:] = sizes[:, None, None, None]
        # The large bias puts every other input channel at its peak everywhere.
        for name in ("norm1", "norm2"):
            weights[f"blocks.{block}.{name}.bias"][::2] += 8.0
    directory = made(weights)
    quantise(directory, planes)
    calibrating = planes[np.arange(len(planes)) % 3 != 0]
    peaks = int8_resnet.answer(weights, calibrating, [], POOLS)[2]
    wanted = int8_resnet.answer(weights, planes, peaks, POOLS)[0]
    found = evaluate(open_backend(directory, INT8, 1), {"planes": planes})["policy"]
    assert rms(wanted - wanted.mean()) > 0.5
    assert rms(found - wanted) < 0.02 * rms(wanted - wanted.mean())


def test_the_graph_is_standard_onnx(made, weights, planes):
    import onnx
    from onnx.reference import ReferenceEvaluator

    directory = made(weights)
    quantise(directory, planes)
    proto = onnx.load(directory / INT8_FILE)
    onnx.checker.check_model(proto, full_check=True)
    rounded = [
        i for i in proto.graph.initializer if i.data_type == onnx.TensorProto.INT8
    ]
    assert {item.name for item in rounded} == {
        f"blocks.{block}.conv{i}.weight" for block in range(3) for i in (1, 2)
    }
    policy, value = ReferenceEvaluator(proto).run(None, {"planes": planes[:8]})
    found = evaluate(open_backend(directory, INT8, 1), {"planes": planes[:8]})
    np.testing.assert_allclose(found["policy"], policy, atol=0.05)
    np.testing.assert_allclose(found["value"], value, atol=0.02)


def test_rows_and_batches_do_not_change_bits(made, weights, planes):
    directory = made(weights)
    quantise(directory, planes)
    backend = open_backend(directory, INT8, 1)
    wanted = evaluate(backend, {"planes": planes})
    for size in (1, 5, 8):
        chosen = np.random.default_rng(size).integers(0, len(planes), size)
        found = evaluate(backend, {"planes": planes[chosen]})
        for name, answers in wanted.items():
            assert found[name].tobytes() == answers[chosen].tobytes()


def test_held_out_positions_do_not_calibrate(made, weights, planes):
    directory = made(weights)
    quantise(directory, planes)
    graph = (directory / INT8_FILE).read_bytes()
    planes[::3] *= 3.0
    quantise(directory, planes)
    assert (directory / INT8_FILE).read_bytes() == graph
    planes[1::3] *= 3.0
    quantise(directory, planes)
    assert (directory / INT8_FILE).read_bytes() != graph


def test_a_good_model_passes(made, weights, planes):
    check = quantise(made(weights), planes)
    assert check.num_rows == 32
    assert check.refusal() is None
    assert 0 < check.policy_divergence < 0.005
    assert 0 < check.value_error < 0.05
    assert check.top1_agreement > 0.8
    assert json.loads(json.dumps(check.record()))["num_rows"] == 32


def test_outlier_weights_are_found(made, weights, planes):
    """One input channel is scaled by 1/1000 and its weights by 1000.

    The float network's outputs stay the same. In int8 the channel's activations vanish
    beside the other channels', and the other weights beside its own.
    """
    directory = made(weights)
    before = int8_resnet.answer(weights, planes[:4], [], POOLS)[0]
    for block in range(3):
        for name in ("norm1.weight", "norm1.bias"):
            weights[f"blocks.{block}.{name}"][0] /= 1000
        weights[f"blocks.{block}.conv1.weight"][:, 0] *= 1000
    after = int8_resnet.answer(weights, planes[:4], [], POOLS)[0]
    np.testing.assert_allclose(after, before, atol=1e-3)
    check = quantise(made(weights), planes)
    refusal = check.refusal()
    assert refusal is not None
    assert "is above" in refusal
    assert directory.joinpath(INT8_FILE).exists()  # the caller decides on deletion


def test_only_legal_actions_are_compared(made, weights, planes):
    """With one legal action every policy is the same, however wrong its logits."""
    legal = np.zeros((len(planes), 30), bool)
    legal[:, 7] = True
    check = quantise(made(weights), planes, legal)
    assert check.policy_divergence == 0.0
    assert check.top1_agreement == 1.0
    assert check.value_error > 0.0


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"policy_divergence": 0.006}, r"policy_divergence \(0.006\) is above 0.005"),
        ({"value_error": 0.06}, r"value_error \(0.06\) is above 0.05"),
        ({"value_error": float("nan")}, r"value_error \(nan\) is above 0.05"),
        ({"score_error": 2.6}, r"score_error \(2.6\) is above 2.5"),
        ({"score_error": float("nan")}, r"score_error \(nan\) is above 2.5"),
    ],
)
def test_what_is_refused(change, refusal):
    fine = {"policy_divergence": 0.001, "value_error": 0.01, "top1_agreement": 0.9}
    check = Int8Check(num_rows=9, **{**fine, **change})
    found = check.refusal(point_utility=0.02)
    assert found is not None
    assert re.fullmatch(refusal, found)


def test_a_network_without_convolutions_is_refused(exporter, random_weights):
    config = MlpConfig()
    graph = exporter.export(VECTORS, config, random_weights(VECTORS, config, 1))
    with refused(RunError, "inference.precision=bf16"):
        int8_graph(peak_graph(graph), {})


def test_a_published_int8_graph_is_part_of_the_model(publish, random_planes, features):
    small = random_planes(features, 30)
    model = publish(1, check=lambda path: quantise(path, small))
    assert INT8_FILE in model.meta.sha256
    assert open_backend(model.path, INT8, 1).precision == "int8"
    data = (model.path / INT8_FILE).read_bytes()
    (model.path / INT8_FILE).write_bytes(data[:-3])
    with refused(UsageError, INT8_FILE):
        load_model(model.path)
    (model.path / INT8_FILE).unlink()
    with refused(UsageError, INT8_FILE):
        load_model(model.path)


def test_an_int8_graph_is_a_function_of_weights_and_positions(
    publish, random_planes, features
):
    planes = random_planes(features, 30)
    folder = publish(1, check=lambda path: quantise(path, planes)).path
    again = publish(2, check=lambda path: quantise(path, planes)).path
    wanted = (folder / INT8_FILE).read_bytes()
    assert (again / INT8_FILE).read_bytes() != wanted  # the weights differ
    for name in ("model.onnx", "weights.safetensors"):
        (again / name).write_bytes((folder / name).read_bytes())
    quantise(again, planes)
    assert (again / INT8_FILE).read_bytes() == wanted


def test_an_int8_graph_that_the_model_does_not_know_is_refused(
    publish, random_planes, features
):
    model = publish(0)
    quantise(model.path, random_planes(features, 30))
    with refused(UsageError, INT8_FILE, "sha256"):
        load_model(model.path)


def test_a_model_without_an_int8_graph_plays_in_floats(publish):
    model = publish()
    assert INT8_FILE not in model.meta.sha256
    assert open_backend(model.path, INT8, 1).precision in ("bf16", "fp32")


def test_an_int8_graph_of_an_earlier_version_is_not_computed(
    publish, random_planes, features
):
    """Without metadata, int8 sums might saturate on CPUs without VNNI."""
    planes = random_planes(features, 30)
    path = publish(1, check=lambda path: quantise(path, planes)).path
    graph = onnx.load(str(path / INT8_FILE))
    del graph.metadata_props[:]
    (path / INT8_FILE).write_bytes(graph.SerializeToString())
    assert not has_int8_graph(path)
    assert open_backend(path, INT8, 1).precision == float_precision()


def test_scores_that_nobody_reads_may_err_but_be_numbers():
    good = Int8Check(
        num_rows=1, policy_divergence=0.0, value_error=0.0, top1_agreement=1.0
    )
    poor = dataclasses.replace(good, score_error=2.6)
    assert poor.refusal() is None
    assert poor.refusal(point_utility=0.019) is None
    broken = dataclasses.replace(good, score_error=math.nan)
    assert broken.refusal() == "score_error (nan) is above inf"
