"""Scores: from the network's distribution through graphs, backends and lanes."""

import importlib.util
import json
import shutil

import numpy as np
import onnx
import pytest
import torch
from safetensors.torch import save_file

from tengen.config import to_dict
from tengen.errors import RunError
from tengen.inference import (
    InferenceConfig,
    RowLayout,
    allocate,
    choose,
    open_backend,
    probe,
    search_outputs,
)
from tengen.inference.device_backend import DeviceBackend
from tengen.inference.openvino_backend import supported_precisions
from tengen.models import ModelExporter
from tengen.models.check import check_export, evaluate
from tengen.nets import InferenceHead, ResNetConfig
from tengen.nets.modules.board_net import score_moments
from tengen.tensors import BoardSpec
from tests.host_device import HostDevice
from tests.refusals import refused

HAS_OPENVINO = importlib.util.find_spec("openvino") is not None
needs_openvino = pytest.mark.skipif(not HAS_OPENVINO, reason="openvino is not here")
FEATURES = BoardSpec(
    num_planes=4,
    height=5,
    width=5,
    num_actions=26,
    policy_layout="cells_and_pass",
    max_score=30,
)
CONFIG = ResNetConfig(num_blocks=2, num_channels=16, head_channels=8, auxiliary=True)


def signature_of(config):
    return config.signature(FEATURES.signature)


def written(path, config=CONFIG):
    """Writes the files of a random model; returns its network."""
    torch.manual_seed(1)
    signature = signature_of(config)
    net = config.build(signature)
    if net.auxiliary_heads is not None:
        # Else every distribution is nearly even.
        torch.nn.init.normal_(net.auxiliary_heads.score.weight, std=0.8)
    state = net.state_dict()
    save_file(state, path / "weights.safetensors")
    weights = {name: tensor.numpy() for name, tensor in state.items()}
    graph = ModelExporter().export(signature, config, weights)
    (path / "model.onnx").write_bytes(graph)
    meta = {"net": to_dict(config), "signature": to_dict(signature)}
    (path / "meta.json").write_text(json.dumps(meta))
    return net.eval()


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    path = tmp_path_factory.mktemp("scored")
    return path, written(path)


def opened(path, backend, scores=True, **config):
    config = {"precision": "fp32", "batch_shape": "dynamic", **config}
    if backend == "openvino" and config["precision"] not in supported_precisions():
        pytest.skip(f"this CPU has no {config['precision']}")
    wanted = InferenceConfig(backend=backend, **config)
    return open_backend(path, wanted, 1, outputs=search_outputs(scores=scores))


def has_score(backend):
    return "score" in backend.signature.outputs


def moments(net, planes):
    """Mean and standard deviation in float64, straight from the head's logits."""
    with torch.inference_mode():
        auxiliary = net.learn(torch.from_numpy(planes))[2]
    share = auxiliary.score.double().softmax(1).numpy()
    points = np.arange(60) - 29.5
    mean = share @ points
    variance = share @ points**2 - mean**2
    return np.stack([mean, np.sqrt(variance)], axis=1)


def test_moments_by_hand():
    # Points -1.5, -0.5, 0.5, 1.5 with shares 1, 0, 1, 2 of 4: mean 0.5, and
    # (1.5^2 * 3 + 0.5^2) / 4 - 0.5^2 = 1.5.
    logits = torch.tensor([[1.0, 0.0, 1.0, 2.0]]).log()
    found = score_moments(logits).numpy()
    np.testing.assert_allclose(found, [[0.5, 1.5**0.5]], rtol=1e-6)
    certain = score_moments(torch.tensor([[0.0, 200.0, 0.0, 0.0]])).numpy()
    np.testing.assert_allclose(certain, [[-0.5, 0.0]], atol=1e-6)


@pytest.mark.parametrize(
    ("backend", "precision", "tolerance"),
    [
        pytest.param("openvino", "fp32", 1e-3, marks=needs_openvino),
        pytest.param("openvino", "bf16", 1.0, marks=needs_openvino),
        ("torch", "fp32", 1e-3),
        ("torch", "bf16", 1.0),
    ],
)
@pytest.mark.parametrize("batch_shape", ["dynamic", "fixed"])
def test_a_backend_answers_with_the_heads_moments(
    scored, planes, backend, precision, tolerance, batch_shape
):
    path, net = scored
    made = opened(path, backend, precision=precision, batch_shape=batch_shape)
    assert has_score(made)
    wanted = moments(net, planes)
    assert wanted.std(axis=0).min() > 0.1
    found = evaluate(made, {"planes": planes})
    np.testing.assert_allclose(found["score"], wanted, atol=tolerance, rtol=0)
    result = probe(made, {"planes": planes}, batch_rows=8)
    assert result.num_rows == 4 * 60


@pytest.mark.parametrize(
    "backend", [pytest.param("openvino", marks=needs_openvino), "torch"]
)
def test_scores_change_no_bit_of_the_other_answers(scored, planes, backend):
    path, _ = scored
    plain = opened(path, backend, scores=False)
    assert not has_score(plain)
    wanted = evaluate(plain, {"planes": planes})
    assert list(wanted) == ["policy", "value"]
    found = evaluate(opened(path, backend), {"planes": planes})
    for name, expected in wanted.items():
        assert found[name].tobytes() == expected.tobytes()
    wanted["score"] = np.zeros((60, 2), np.float32)
    with refused(ValueError, "score"):
        plain.bind({"planes": planes}, wanted)


def test_a_wrong_array_of_scores_is_refused(scored, planes):
    made = opened(scored[0], "torch")
    outputs = allocate(made.signature.outputs, 60)
    for broken in (np.zeros((59, 2), np.float32), np.zeros((60, 2))):
        with refused(ValueError, "score"):
            made.bind({"planes": planes}, {**outputs, "score": broken})
    # Who has no room for them does without.
    del outputs["score"]
    made.bind({"planes": planes}, outputs).run(60)
    assert outputs["value"].std() > 0


def test_lanes_hold_scores(scored, planes):
    path, net = scored
    layout = RowLayout((4, 5, 5), is_packed=False)
    for scores in (True, False):
        backend = DeviceBackend(
            path,
            precision="fp32",
            devices=[HostDevice()],
            max_rows=64,
            outputs=search_outputs(scores=scores),
        )
        lane = backend.open_lanes(layout, 64)[0]
        assert has_score(backend) is ("score" in lane.outputs) is scores
        lane.rows[:60] = planes.reshape(60, -1).view(np.uint8)
        lane.run(60)
        if scores:
            wanted = moments(net, planes)
            np.testing.assert_allclose(lane.outputs["score"][:60], wanted, atol=1e-3)


@needs_openvino
def test_a_graph_from_before_scores_serves_without_them(scored, planes, tmp_path):
    path = tmp_path / "model"
    shutil.copytree(scored[0], path)
    graph = onnx.load_model(path / "model.onnx")
    assert [output.name for output in graph.graph.output] == [
        "policy",
        "value",
        "score",
    ]
    del graph.graph.output[2]
    onnx.save_model(graph, path / "model.onnx")
    old = opened(path, "openvino")
    assert not has_score(old)
    found = evaluate(old, {"planes": planes})
    wanted = evaluate(opened(scored[0], "openvino"), {"planes": planes})
    assert found["policy"].tobytes() == wanted["policy"].tobytes()
    # The weights have the heads all the same.
    assert has_score(opened(path, "torch"))


def test_networks_without_the_heads_answer_as_before(tmp_path):
    config = ResNetConfig(num_blocks=2, num_channels=16, head_channels=8)
    net = written(tmp_path, config)
    assert not has_score(opened(tmp_path, "torch"))
    assert "score" not in config.targets(FEATURES)
    assert "score" in CONFIG.targets(FEATURES)
    assert InferenceHead(net).outputs == ("policy", "value")
    graph = onnx.load_model(tmp_path / "model.onnx")
    assert [output.name for output in graph.graph.output] == ["policy", "value"]


@needs_openvino
def test_the_check_of_an_export_sees_scores(scored, planes, tmp_path):
    path = tmp_path / "model"
    shutil.copytree(scored[0], path)
    good = check_export(path, opened(path, "openvino"), {"planes": planes})
    assert good.spreads["score"] > 0.3
    assert good.errors["score"] < 1e-3
    plain = check_export(path, opened(path, "openvino", False), {"planes": planes})
    assert "score" not in plain.errors
    graph = onnx.load_model(path / "model.onnx")
    for tensor in graph.graph.initializer:
        if tensor.name == "auxiliary_heads.score.weight":
            half = onnx.numpy_helper.to_array(tensor) / 2
            tensor.CopyFrom(onnx.numpy_helper.from_array(half, tensor.name))
    onnx.save_model(graph, path / "model.onnx")
    with refused(RunError, "score_error"):
        check_export(path, opened(path, "openvino"), {"planes": planes})


def test_the_choice_is_made_with_scores_where_they_are_wanted(
    scored, planes, monkeypatch
):
    seen = []

    def note(*args, **options):
        seen.append(open_backend(*args, **options))
        return seen[-1]

    monkeypatch.setattr("tengen.inference.choice.open_backend", note)
    config = InferenceConfig(backend="torch", devices="cpu", precision="fp32")
    wanted = search_outputs(scores=True)
    choose(scored[0], config, {"planes": planes}, 1, outputs=wanted)
    assert seen
    assert all(has_score(backend) for backend in seen)
    seen.clear()
    wanted = search_outputs(scores=False)
    choose(scored[0], config, {"planes": planes}, 1, outputs=wanted)
    assert seen
    assert not any(has_score(backend) for backend in seen)
