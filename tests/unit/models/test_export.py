from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from torch import Tensor, nn

from tengen.errors import RunError
from tengen.models import ModelExporter
from tengen.models.export import architecture_hash
from tengen.models.trace import trace
from tengen.nets import (
    FeatureSpec,
    InferenceHead,
    MlpConfig,
    NetConfig,
    ResNetConfig,
    build_net,
)

Make = Callable[..., Any]


def torch_answers(
    features: FeatureSpec, config: NetConfig, weights: Any, planes: Any
) -> tuple[Any, Any]:
    net = build_net(features, config)
    net.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in weights.items()})
    with torch.inference_mode():
        policy, value = InferenceHead(net).eval()(torch.from_numpy(planes))
    return policy.numpy(), value.numpy()


def onnx_answers(data: bytes, planes: Any) -> tuple[Any, Any]:
    """By ONNX's own interpreter in numpy, which shares nothing with our rules."""
    policy, value = ReferenceEvaluator(data).run(None, {"planes": planes})
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
    layout: Any,
    num_actions: int,
    mixed_sizes: bool,
    random_weights: Make,
    random_planes: Make,
) -> None:
    features = FeatureSpec(
        num_planes=4, height=3, width=4, num_actions=num_actions, policy_layout=layout
    )
    config = ResNetConfig(
        num_blocks=2, num_channels=8, head_channels=4, mixed_sizes=mixed_sizes
    )
    weights = random_weights(features, config, 1)
    data = ModelExporter().export(features, config, weights)
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
def test_of_the_auxiliary_heads_the_score_alone_is_exported(
    max_score: int, random_weights: Make
) -> None:
    features = FeatureSpec(
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
        data = ModelExporter().export(features, config, {**weights, **shared})
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


def test_a_vector_network_is_exported_too(random_weights: Make) -> None:
    features = FeatureSpec(num_planes=6, num_actions=3)
    config = MlpConfig(num_layers=2, num_units=8)
    weights = random_weights(features, config, 1)
    data = ModelExporter().export(features, config, weights)
    rows = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
    wanted = torch_answers(features, config, weights, rows)
    for found, want in zip(onnx_answers(data, rows), wanted, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def test_one_graph_serves_every_board_size(
    exporter: ModelExporter,
    features: FeatureSpec,
    config: ResNetConfig,
    random_weights: Make,
    random_planes: Make,
) -> None:
    weights = random_weights(features, config, 1)
    data = exporter.export(features, config, weights)
    larger = FeatureSpec(
        num_planes=4, height=7, width=6, num_actions=42, policy_layout="cells"
    )
    planes = random_planes(larger, 1)
    policy, value = onnx_answers(data, planes)
    wanted = torch_answers(features, config, weights, planes)
    np.testing.assert_allclose(policy, wanted[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(value, wanted[1], rtol=1e-4, atol=1e-5)


def test_patching_weights_equals_a_fresh_export(
    exporter: ModelExporter,
    features: FeatureSpec,
    config: ResNetConfig,
    random_weights: Make,
) -> None:
    exporter.export(features, config, random_weights(features, config, 1))
    weights = random_weights(features, config, 2)
    patched = exporter.export(features, config, weights)
    assert patched == ModelExporter().export(features, config, weights)


def test_tracing_leaves_the_random_generator_alone(
    features: FeatureSpec, config: ResNetConfig
) -> None:
    before = torch.random.get_rng_state()
    ModelExporter().template(features, config)
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_missing_tensor_is_refused(
    exporter: ModelExporter,
    features: FeatureSpec,
    config: ResNetConfig,
    random_weights: Make,
) -> None:
    weights = random_weights(features, config, 1)
    del weights["tip.running_var"]
    with pytest.raises(RunError, match=r"tensor \(tip.running_var\) is missing"):
        exporter.export(features, config, weights)


def test_an_unexpected_tensor_is_refused(
    exporter: ModelExporter,
    features: FeatureSpec,
    config: ResNetConfig,
    random_weights: Make,
) -> None:
    weights = random_weights(features, config, 1)
    weights["tip.weihgt"] = weights["tip.weight"]
    with pytest.raises(RunError, match=r'did you mean "tip.weight"'):
        exporter.export(features, config, weights)


@pytest.mark.parametrize("change", [lambda w: w[:-1], lambda w: w.astype(np.float64)])
def test_a_tensor_of_another_shape_or_dtype_is_refused(
    change: Callable[[Any], Any],
    exporter: ModelExporter,
    features: FeatureSpec,
    config: ResNetConfig,
    random_weights: Make,
) -> None:
    weights = random_weights(features, config, 1)
    weights["tip.weight"] = change(weights["tip.weight"])
    with pytest.raises(RunError, match=r"tensor \(tip.weight\) is float"):
        exporter.export(features, config, weights)


def test_a_template_on_disk_is_used_again(
    features: FeatureSpec,
    config: ResNetConfig,
    random_weights: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weights = random_weights(features, config, 1)
    first = ModelExporter(tmp_path / "templates").export(features, config, weights)
    monkeypatch.setattr("tengen.models.export._traced", None)
    again = ModelExporter(tmp_path / "templates").export(features, config, weights)
    assert again == first


def test_a_damaged_template_is_refused_by_name(
    features: FeatureSpec, config: ResNetConfig, tmp_path: Path
) -> None:
    path = tmp_path / f"{architecture_hash(features, config)}.onnx"
    path.write_bytes(b"not a graph")
    with pytest.raises(RunError, match=re.escape(f"template ({path}) is not")):
        ModelExporter(tmp_path).template(features, config)
    path.unlink()
    path.mkdir()
    with pytest.raises(RunError, match="cannot be read, is a directory; delete it"):
        ModelExporter(tmp_path).template(features, config)


class Net(nn.Module):
    """A net around one operation."""

    def __init__(self, operation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.operation = operation

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        x = self.operation(self.linear(planes.mean((2, 3))))
        return x, x


def test_an_operation_without_a_rule_is_refused_by_name() -> None:
    head = InferenceHead(Net(torch.erfinv))  # type: ignore[arg-type]
    with pytest.raises(RunError, match=r"operation \(aten.erfinv.default\) has no"):
        trace(head.eval(), (4, 5, 5), any_size=True)


def test_an_argument_without_a_rule_is_refused_by_name() -> None:
    head = InferenceHead(Net(lambda x: torch.add(x, x, alpha=2)))  # type: ignore[arg-type]
    with pytest.raises(RunError, match=r"operation \(aten.add.Tensor\) has arguments"):
        trace(head.eval(), (4, 5, 5), any_size=True)


def test_a_net_that_fixes_the_batch_is_refused() -> None:
    head = InferenceHead(Net(lambda x: x.reshape(2, 3)))  # type: ignore[arg-type]
    with pytest.raises(RunError, match="cannot be traced"):
        trace(head.eval(), (4, 5, 5), any_size=True)


def test_a_tensor_that_training_does_not_save_is_refused() -> None:
    net = Net(lambda x: x * net.extra)
    net.register_buffer("extra", torch.ones(3), persistent=False)
    head = InferenceHead(net)  # type: ignore[arg-type]
    with pytest.raises(RunError, match=r"network tensor \(extra\) is not in its state"):
        trace(head.eval(), (4, 5, 5), any_size=True)
