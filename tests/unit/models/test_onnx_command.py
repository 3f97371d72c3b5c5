"""``tengen data export-onnx``, and the examples that use its files."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from onnx.reference import ReferenceEvaluator

from tengen import games
from tengen.cli import main
from tengen.models import ModelMeta, publish_model
from tengen.nets import InferenceHead, MlpConfig, ResNetConfig, board_of
from tengen.run import RunDirectory
from tengen.tensors import Signature, TensorSpec

EXAMPLES = Path(__file__).parents[3] / "examples"
CARTPOLE = Signature(
    inputs={"observation": TensorSpec(shape=(4,))},
    outputs={"policy": TensorSpec(shape=(2,)), "value": TensorSpec()},
)
ALONE = """
import runpy, sys
sys.modules["tengen"] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def publish(path, task, net, wanted):
    """Publishes an untrained model without a graph; returns it and its network."""
    signature = net.signature(wanted)
    torch.manual_seed(1)
    built = net.build(signature)
    meta = ModelMeta(
        task=task,
        agent="any",
        net=net,
        signature=signature,
        generation=0,
        num_steps=0,
        num_samples=0,
        sha256={},
    )
    tensors = {name: tensor.numpy() for name, tensor in built.state_dict().items()}
    run = RunDirectory.create_or_resume(path)
    run.write_run({"config": {"task": task}})
    folder = run.models
    publish_model(folder.entry(0), meta, tensors, None)
    return path, InferenceHead(built).eval()


@pytest.fixture(scope="module")
def tictactoe(tmp_path_factory):
    net = ResNetConfig(num_blocks=2, num_channels=8, head_channels=4)
    path = tmp_path_factory.mktemp("tictactoe") / "run"
    wanted = board_of(games.make("tictactoe")).signature
    return publish(path, "tictactoe", net, wanted)


@pytest.fixture(scope="module")
def cartpole(tmp_path_factory):
    path = tmp_path_factory.mktemp("cartpole") / "run"
    net = MlpConfig(num_layers=1, num_units=8)
    return publish(path, "CartPole-v1", net, CARTPOLE)


def export(model, file, capsys):
    assert main(["data", "export-onnx", str(model), str(file), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def played_alone(example, file):
    """Runs an example in a process where importing tengen fails."""
    command = [sys.executable, "-c", ALONE, str(EXAMPLES / example), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_graph_answers_as_the_network(cartpole, tmp_path, capsys):
    run, net = cartpole
    report = export(run, tmp_path / "net.onnx", capsys)
    assert report["task"] == "CartPole-v1"
    assert report["inputs"] == {"observation": {"dtype": "float32", "shape": [4]}}
    assert list(report["outputs"]) == ["policy", "value"]
    rows = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    graph = ReferenceEvaluator((tmp_path / "net.onnx").read_bytes())
    policy, value = graph.run(["policy", "value"], {"observation": rows})
    with torch.inference_mode():
        wanted_policy, wanted_value = net(torch.from_numpy(rows))
    np.testing.assert_allclose(policy, wanted_policy.numpy(), atol=1e-5)
    np.testing.assert_allclose(value, wanted_value.numpy(), atol=1e-5)


def test_tic_tac_toe_is_played_by_onnxruntime_alone(tictactoe, tmp_path, capsys):
    onnxruntime = pytest.importorskip("onnxruntime")
    run, net = tictactoe
    file = tmp_path / "net.onnx"
    export(run, file, capsys)
    boards = played_alone("play_onnx.py", file).strip().split("\n \n")
    cells = [board.split() for board in boards]
    for ply, (before, after) in enumerate(
        zip([["."] * 9, *cells], cells, strict=False)
    ):
        (new,) = [i for i in range(9) if before[i] != after[i]]
        assert (before[new], after[new]) == (".", "XO"[ply % 2])
    # The first move is the network's best.
    planes = games.make("tictactoe").new_state().observation()[None]
    with torch.inference_mode():
        best = int(net(torch.from_numpy(planes))[0].argmax())
    assert cells[0][best] == "X"
    assert onnxruntime.__version__


def test_cartpole_is_acted_in_by_onnxruntime_alone(cartpole, tmp_path, capsys):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("gymnasium")
    file = tmp_path / "net.onnx"
    export(cartpole[0], file, capsys)
    assert played_alone("act_onnx.py", file).startswith("return ")


@pytest.mark.parametrize(
    ("file", "says"),
    [("gone/net.onnx", "onnx (gone/net.onnx) must be a file"), (".", "onnx (.) must")],
)
def test_a_file_without_a_folder_is_refused(tictactoe, capsys, file, says):
    assert main(["data", "export-onnx", str(tictactoe[0]), file]) == 2
    assert says in capsys.readouterr().err


def test_a_network_with_a_memory_is_refused(tmp_path, capsys):
    net = MlpConfig(num_layers=1, num_units=8, lstm_units=4)
    run, _ = publish(tmp_path / "run", "CartPole-v1", net, CARTPOLE)
    file = tmp_path / "net.onnx"
    assert main(["data", "export-onnx", str(run), str(file)]) == 2
    assert "is recurrent" in capsys.readouterr().err
    assert not file.exists()
