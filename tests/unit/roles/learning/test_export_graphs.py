"""Which models get a graph: those of runs whose backend reads it."""

import dataclasses

import pytest

from tengen.inference import InferenceConfig
from tengen.models import load_model
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, read_config, write_config
from tengen.run import RunDirectory

TORCH = InferenceConfig(devices="cpu", backend="torch", precision="fp32")


@pytest.fixture
def run(tmp_path):
    return RunDirectory.create_or_resume(tmp_path / "run")


def configure(run, inference):
    config = make_config("tictactoe", None, None)
    net = dataclasses.replace(config.net, num_blocks=2, num_channels=8)
    write_config(run, dataclasses.replace(config, net=net, inference=inference))


def turns(run, *names):
    reports = []
    for name in names:
        role = make_role(name, read_config(run), run, RoleContext())
        try:
            reports.append(role.turn())
        finally:
            role.close()
    return reports


def test_a_run_that_computes_by_torch_exports_weights_alone(run):
    configure(run, TORCH)
    report = turns(run, "learn", "export", "gate")[1]
    assert report["check"]["spreads"]["policy"] > 0
    model = load_model(run.models.entry(0))
    assert model.meta.sha256.keys() == {"weights.safetensors"}
    assert list((run.path / "templates").iterdir()) == []
    assert read_config(run).inference.batch_shape != "auto"
    # Its model cannot be opened otherwise, whoever asks anew.
    configure(run, InferenceConfig(devices="cpu"))
    assert turns(run, "export") == [None]
    assert read_config(run).inference.backend == "torch"


def test_a_run_that_computes_by_openvino_exports_graphs(run):
    pytest.importorskip("openvino")
    configure(run, InferenceConfig(devices="cpu", precision="fp32"))
    turns(run, "learn", "export", "gate")
    assert read_config(run).inference.backend == "openvino"
    model = load_model(run.models.entry(0))
    assert model.meta.sha256.keys() == {"weights.safetensors", "model.onnx"}
