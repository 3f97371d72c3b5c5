import dataclasses
import sys

import numpy as np
import onnx
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from torch import nn
from torch.nn import functional

from tengen.errors import RunError, UsageError
from tengen.models import ModelExporter
from tengen.models.export import OnnxTemplate, architecture_hash
from tengen.models.trace import trace
from tengen.nets import (
    InferenceHead,
    MlpConfig,
    Net,
    ResNetConfig,
)
from tengen.tensors import BoardSpec, Signature, TensorSpec
from tests.refusals import refused
from tests.unit.models.conftest import VECTORS, signature_of


def torch_answers(features, config, weights, planes):
    net = config.build(signature_of(features, config))
    net.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in weights.items()})
    with torch.inference_mode():
        policy, value = InferenceHead(net).eval()(torch.from_numpy(planes))
    return policy.numpy(), value.numpy()


def onnx_answers(data, planes, name="planes"):
    """Returns the outputs of ONNX's reference evaluator, an independent check."""
    policy, value = ReferenceEvaluator(data).run(None, {name: planes})
    return policy, value


@pytest.mark.parametrize(
    ("layout", "num_actions", "mixed_sizes"),
    [
        ("cells", 12, False),
        ("cells_and_pass", 13, True),
        ("columns", 4, False),
        ("flat", 7, False),
    ],
)
def test_the_graph_computes_what_torch_computes(
    layout, num_actions, mixed_sizes, random_weights, random_planes
):
    features = BoardSpec(
        num_planes=4, height=3, width=4, num_actions=num_actions, policy_layout=layout
    )
    config = ResNetConfig(
        num_blocks=2, num_channels=8, head_channels=4, mixed_sizes=mixed_sizes
    )
    weights = random_weights(features, config, 1)
    data = ModelExporter().export(signature_of(features, config), config, weights)
    onnx.checker.check_model(onnx.load_model_from_string(data), full_check=True)
    planes = random_planes(features, 5)
    for found, wanted in zip(
        onnx_answers(data, planes),
        torch_answers(features, config, weights, planes),
        strict=True,
    ):
        assert wanted.std() > 0.003
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("max_score", [0, 20])
def test_of_the_auxiliary_heads_the_score_alone_is_exported(max_score, random_weights):
    features = BoardSpec(
        num_planes=4,
        height=3,
        width=4,
        num_actions=13,
        policy_layout="cells_and_pass",
        max_score=max_score,
    )
    models = []
    for auxiliary in (False, True):
        config = ResNetConfig(num_blocks=2, num_channels=8, auxiliary=auxiliary)
        weights = random_weights(features, config, 1)
        shared = {
            name: array
            for name, array in (models[0][0] if models else weights).items()
            if not name.startswith("auxiliary_heads.")
        }
        data = ModelExporter().export(
            signature_of(features, config), config, {**weights, **shared}
        )
        models.append((weights, data))
    graphs = [onnx.load_model_from_string(data).graph for _, data in models]
    plain, scored = ({t.name for t in graph.initializer} for graph in graphs)
    assert len(plain) > 20
    if max_score == 0:
        assert graphs[0].SerializeToString() == graphs[1].SerializeToString()
    else:
        head = "auxiliary_heads.score"
        assert scored - plain == {f"{head}.weight", f"{head}.bias"}
        assert plain < scored


@pytest.mark.parametrize(
    ("num_rows", "layer_norm"), [(None, False), (0.0, False), (7.0, False), (7.0, True)]
)
def test_a_vector_network_is_exported_too(num_rows, layer_norm, random_weights):
    config = MlpConfig(
        num_layers=2,
        num_units=8,
        standardizes=num_rows is not None,
        layer_norm=layer_norm,
    )
    weights = random_weights(VECTORS, config, 1)
    if num_rows is not None:
        sums = np.linspace(-2, 2, 6) * num_rows
        weights = {
            **weights,
            "standard.num_rows": np.float32([num_rows]),
            "standard.total": sums,
            "standard.squares": 3 * np.abs(sums) * 2,
        }
    data = ModelExporter().export(VECTORS, config, weights)
    rows = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
    wanted = torch_answers(VECTORS, config, weights, rows)
    for found, want in zip(
        onnx_answers(data, rows, "observation"), wanted, strict=True
    ):
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def test_one_graph_serves_every_board_size(
    exporter, features, config, random_weights, random_planes
):
    weights = random_weights(features, config, 1)
    data = exporter.export(signature_of(features, config), config, weights)
    larger = BoardSpec(
        num_planes=4, height=7, width=6, num_actions=42, policy_layout="cells"
    )
    planes = random_planes(larger, 1)
    policy, value = onnx_answers(data, planes)
    wanted = torch_answers(features, config, weights, planes)
    np.testing.assert_allclose(policy, wanted[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(value, wanted[1], rtol=1e-4, atol=1e-5)


def test_patching_weights_equals_a_fresh_export(
    exporter, features, config, random_weights
):
    exporter.export(
        signature_of(features, config), config, random_weights(features, config, 1)
    )
    weights = random_weights(features, config, 2)
    patched = exporter.export(signature_of(features, config), config, weights)
    assert patched == ModelExporter().export(
        signature_of(features, config), config, weights
    )


def test_tracing_leaves_the_random_generator_alone(features, config):
    before = torch.random.get_rng_state()
    ModelExporter().template(signature_of(features, config), config)
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda w: w.pop("tip.running_var"), "tensor (tip.running_var)"),
        (lambda w: w.update({"tip.weihgt": w["tip.weight"]}), "tip.weight"),
        (
            lambda w: w.update({"tip.weight": w["tip.weight"][:-1]}),
            "tensor (tip.weight)",
        ),
        (
            lambda w: w.update({"tip.weight": w["tip.weight"].astype(np.float64)}),
            "tensor (tip.weight)",
        ),
    ],
)
def test_tensors_of_another_network_are_refused(
    change, named, exporter, features, config, random_weights
):
    weights = random_weights(features, config, 1)
    change(weights)
    with refused(RunError, named):
        exporter.export(signature_of(features, config), config, weights)


def test_a_template_on_disk_is_used_again(
    features, config, random_weights, tmp_path, monkeypatch
):
    weights = random_weights(features, config, 1)
    first = ModelExporter(tmp_path / "templates").export(
        signature_of(features, config), config, weights
    )
    monkeypatch.setattr("tengen.models.export._traced", None)
    again = ModelExporter(tmp_path / "templates").export(
        signature_of(features, config), config, weights
    )
    assert again == first


def test_a_damaged_template_is_refused_by_name(features, config, tmp_path):
    signature = signature_of(features, config)
    path = tmp_path / f"{architecture_hash(signature, config)}.onnx"
    path.write_bytes(b"not a graph")
    with refused(RunError, f"template ({path})"):
        ModelExporter(tmp_path).template(signature, config)
    path.unlink()
    path.mkdir()
    with refused(RunError, "directory"):
        ModelExporter(tmp_path).template(signature, config)


CONSTANT = torch.ones(3)
PIXELS = Signature(
    inputs={"pixels/near": TensorSpec(dtype="uint8", shape=(4, 5, 5))},
    outputs={"policy": TensorSpec(shape=(3,)), "value": TensorSpec()},
)


class OneOperation(Net):
    """A network with one operation."""

    def __init__(self, operation):
        super().__init__(PIXELS, MlpConfig())
        self.linear = nn.Linear(4, 3)
        self.unread = nn.Linear(2, 2)
        self.operation = operation

    def answer(self, inputs, state):
        means = inputs["pixels/near"].float().mean((2, 3))
        x = self.operation(self.linear(means))
        return {"policy": x, "value": x.sum(1)}, {}


def traced(net):
    return trace(InferenceHead(net).eval(), PIXELS)


def answers(net, rows):
    with torch.inference_mode():
        policy, value = InferenceHead(net).eval()(torch.from_numpy(rows))
    return policy.numpy(), value.numpy()


@pytest.fixture
def without_onnxscript(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)


def pixels(num_rows):
    shape = (num_rows, 4, 5, 5)
    return np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)


def test_tensors_have_the_names_and_types_of_the_signature():
    torch.manual_seed(0)
    net = OneOperation(torch.tanh)
    data = traced(net).SerializeToString()
    onnx.checker.check_model(onnx.load_model_from_string(data), full_check=True)
    rows = pixels(5)
    names = ["value", "policy"]
    found = ReferenceEvaluator(data).run(names, {"pixels/near": rows})
    policy, value = answers(net, rows)
    np.testing.assert_allclose(found[0], value, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1], policy, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: torch.cat(tensors=[x, x], axis=1)[:, :3],
        lambda x: x - x.sum(axis=1, keepdim=True),
        lambda x: torch.add(input=x, other=x),
        lambda x: 1.0 - functional.softmax(x, dim=1),
        lambda x: x * x.select(1, 0).unsqueeze(1),
    ],
)
def test_arguments_have_any_of_their_names(operation, without_onnxscript):
    torch.manual_seed(0)
    net = OneOperation(operation)
    rows = pixels(5)
    found = ReferenceEvaluator(traced(net)).run(None, {"pixels/near": rows})
    for got, wanted in zip(found, answers(net, rows), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (torch.erfinv, "operation (torch.erfinv)"),
        (lambda x: torch.add(x, x, alpha=2), "operation (torch.add)"),
        (lambda x: x * torch.tensor([1.0, 2.0, 3.0]), "operation (torch.tensor)"),
        (lambda x: x.sub_(1.0), "operation (torch.Tensor.sub_, in place)"),
        (lambda x: functional.relu(x, inplace=True), "relu, in place"),
        (lambda x: x.__setitem__(0, 1.0) or x, "__setitem__, in place"),
        (lambda x: x * CONSTANT, "constant tensor ([3])"),
        (lambda x: x * (x.shape[0] / 2), "the size of its inputs"),
        (lambda x: [torch._foreach_add_([x], 1.0), x][1], "in place"),
    ],
)
def test_what_has_no_rule_is_refused_by_name_without_torchs_exporter(
    operation, reason, without_onnxscript
):
    with refused(RunError, reason, "onnxscript", "inference.backend=torch"):
        traced(OneOperation(operation))


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x if x.shape[0] < 8 else x * 2,
        lambda x: x if len(x) < 8 else x * 2,
        lambda x: x / x[0, 0].item(),
        lambda x: x if x[0, 0] else x * 2,
        lambda x: x * float(x.detach().numpy().sum()),
    ],
)
def test_no_graph_depends_on_the_examples(operation, without_onnxscript):
    with refused(RunError, "inference.backend=torch"):
        traced(OneOperation(operation))


def test_what_has_no_rule_goes_through_torchs_exporter():
    pytest.importorskip("onnxscript")
    from openvino import Core

    torch.manual_seed(0)
    net = OneOperation(lambda x: functional.gelu(x) * torch.tensor([1.0, 2.0, 3.0]))
    template = OnnxTemplate.from_graph(traced(net), set(net.state_dict()))
    assert template.tensor_names == set(net.state_dict())
    with torch.no_grad():
        for tensor in net.parameters():
            tensor.normal_()
    weights = {name: tensor.numpy() for name, tensor in net.state_dict().items()}
    model = Core().compile_model(
        Core().read_model(template.patch(weights)),
        "CPU",
        {"INFERENCE_PRECISION_HINT": "f32"},
    )
    rows = pixels(5)
    found = model({"pixels/near": rows})
    policy, value = answers(net, rows)
    np.testing.assert_allclose(found["policy"], policy, rtol=1e-4)
    np.testing.assert_allclose(found["value"], value, rtol=1e-4)


def test_what_torchs_exporter_does_not_know_is_refused():
    pytest.importorskip("onnxscript")
    with refused(RunError, "exporter", "inference.backend=torch"):
        traced(OneOperation(torch.erfinv))


def test_a_net_that_fixes_the_batch_is_refused():
    with refused(RunError, "network (OneOperation)"):
        traced(OneOperation(lambda x: x.reshape(2, 3)))


def test_a_tensor_that_training_does_not_save_is_refused():
    net = OneOperation(lambda x: x * net.extra)
    net.register_buffer("extra", torch.ones(3), persistent=False)
    with refused(RunError, "tensor (extra)"):
        traced(net)


def test_a_net_that_keeps_state_has_no_graph(features, config):
    signature = signature_of(features, config)
    keeping = dataclasses.replace(signature, state={"hidden": TensorSpec(shape=(4,))})
    with refused(UsageError, "net (resnet)"):
        ModelExporter().template(keeping, config)
