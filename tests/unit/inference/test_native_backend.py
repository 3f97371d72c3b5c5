"""The core's own evaluation of a network of line patterns."""

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from safetensors.torch import save_file as save_torch_file

from tengen import games
from tengen.cli import main
from tengen.errors import UsageError
from tengen.evaluation.players import open_for_play
from tengen.inference import (
    InferenceConfig,
    allocate,
    choose,
    devices_of,
    open_backend,
)
from tengen.inference.native_backend import NativeBackend
from tengen.nets import ResNetConfig, board_of
from tengen.nets.lines import LinesConfig
from tests.refusals import refused
from tests.unit.conftest import make_run
from tests.unit.nets.test_lines import expected, planes_of

AUTO = InferenceConfig(devices="cpu")


def make_net(task, seed=0):
    torch.manual_seed(seed)
    signature = board_of(games.make(task)).signature
    return LinesConfig(num_hidden=32, num_channels=48).build(signature).eval()


def publish(path, task):
    net = make_net(task)
    models = [(0, net.state_dict())]
    return make_run(
        path, task, "alphazero", net.config, models, signature=net.signature
    )


def evaluated(backend, planes):
    inputs = {"planes": np.ascontiguousarray(planes)}
    outputs = allocate(backend.signature.outputs, len(planes))
    backend.bind(inputs, outputs).run(len(planes))
    return outputs


@pytest.mark.parametrize("task", ["tictactoe", "gomoku/9", "gomoku/15/exact"])
def test_it_evaluates_as_torch_does(task):
    net = make_net(task)
    planes = planes_of(task, 40).numpy()
    torch_config = InferenceConfig(
        devices="cpu", backend="torch", precision="fp32", batch_shape="dynamic"
    )
    of_torch = evaluated(open_backend(net, torch_config, 1), planes)
    found = evaluated(NativeBackend(net), planes)
    for name, answer in of_torch.items():
        assert np.abs(found[name] - answer).max() < 1e-5, name
        assert np.abs(answer).max() > 1e-3


def test_rows_and_batches_do_not_change_bits():
    backend = NativeBackend(make_net("gomoku/9"))
    planes = planes_of("gomoku/9", 9).numpy()
    whole = evaluated(backend, planes)
    for rows in (planes[:1], planes[4:7], planes[::-1]):
        alone = evaluated(backend, rows)
        index = [int((planes == row).all((1, 2, 3)).argmax()) for row in rows]
        for name, answer in alone.items():
            assert np.array_equal(answer, whole[name][index]), name


def test_it_is_chosen_for_a_network_that_the_core_evaluates(tmp_path):
    directory = publish(tmp_path / "run", "gomoku/6").models.entry(0)
    planes = planes_of("gomoku/6", 40).numpy()
    choice = choose(directory, AUTO, {"planes": planes}, 1)
    assert (choice.config.backend, choice.config.precision) == ("native", "fp32")
    assert choice.is_deterministic
    backend = open_backend(directory, choice.config, 2, outputs=["value"])
    assert (backend.name, list(backend.signature.outputs)) == ("native", ["value"])
    assert np.array_equal(
        evaluated(backend, planes)["value"],
        evaluated(NativeBackend(make_net("gomoku/6")), planes)["value"],
    )


def test_a_model_without_graph_plays(tmp_path, capsys):
    run = publish(tmp_path / "run", "gomoku/6")
    assert not (run.models.entry(0) / "model.onnx").exists()
    words = ["match", str(run.path), "random", "--games", "2", "--simulations", "16"]
    assert main([*words, "--threads", "1"]) == 0
    assert "A " in capsys.readouterr().out


def test_what_it_does_not_evaluate_is_refused(tmp_path):
    torch.manual_seed(0)
    signature = board_of(games.make("gomoku/6")).signature
    resnet = ResNetConfig(num_blocks=2, num_channels=8).build(signature).eval()
    with refused(UsageError, "net.kind (resnet) is not evaluated by the core"):
        NativeBackend(resnet)
    with refused(UsageError, "precision (bf16) must be fp32"):
        InferenceConfig(backend="native", precision="bf16")
    directory = publish(tmp_path / "run", "gomoku/6").models.entry(0)
    path = directory / "weights.safetensors"
    weights = load_file(path)
    for damaged, message in (
        ({k: w for k, w in weights.items() if k != "context.bias"}, "not those of"),
        ({**weights, "extra": weights["policy.bias"]}, "not those of"),
        ({**weights, "policy.bias": weights["policy.bias"][:-1]}, "not those of"),
        ({**weights, "policy.bias": weights["policy.bias"][:, None]}, "not those of"),
        ({k: w.astype(np.float16) for k, w in weights.items()}, "not those of"),
        ({k: w.astype(np.int32) for k, w in weights.items()}, "not those of"),
        ({**weights, "line.2.bias": weights["line.2.bias"] * np.nan}, "be finite"),
    ):
        save_file({k: np.ascontiguousarray(v) for k, v in damaged.items()}, path)
        with refused(UsageError, "cannot be built", message):
            NativeBackend(directory)
    tensors = {k: torch.from_numpy(v).bfloat16() for k, v in weights.items()}
    save_torch_file(tensors, path)
    # Whether numpy knows this dtype depends on what this process has imported.
    with refused(UsageError, f"model ({directory}) cannot be", "again"):
        NativeBackend(directory)
    for content in (b"", path.read_bytes()[:-40]):
        path.write_bytes(content)
        with refused(UsageError, "cannot be read"):
            NativeBackend(directory)


@pytest.mark.parametrize("plane", [1, 2])
def test_a_number_above_one_half_is_a_stone(plane):
    """A game in Python may write anything, such as a stone in both planes."""
    net = make_net("gomoku/6")
    planes = planes_of("gomoku/6", 6).numpy()
    for row, value in enumerate((0.4, 0.6, 3.0, -1.0, 1e30, np.nan)):
        planes[row, plane, 2:5, 1:4] = value
    found = evaluated(NativeBackend(net), planes)["policy"]
    for row, logits in zip(torch.from_numpy(planes), found, strict=True):
        assert np.abs(logits - expected(net, row)[0].detach().numpy()).max() < 1e-5


def test_it_plays_on_the_cpu(tmp_path):
    assert devices_of(InferenceConfig(), LinesConfig()) == "cpu"
    directory = publish(tmp_path / "run", "gomoku/6").models.entry(0)
    assert open_for_play(directory, 1).name == "native"
    assert open_for_play(directory, 1, precision="int8").precision == "fp32"


def test_training_publishes_models_that_the_core_evaluates(tmp_path, capsys):
    out = str(tmp_path / "run")
    words = ["train", "gomoku/5", "--games", "64", "--out", out, "--threads", "1"]
    for setting in (
        "net.kind=lines",
        "agent.stages=[]",
        "agent.actor.games_per_generation=32",
        "store.min_rows=500",
        "agent.rating.time_share=0",
        "agent.rating.final_games=0",
    ):
        words += ["--set", setting]
    assert main(words) == 0
    assert "inference computes in fp32" in capsys.readouterr().out
    assert main(["match", out, f"{out}@1", "--games", "2", "--threads", "1"]) == 0


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("lines", "backend", "openvino"),
        ("lines", "precision", "bf16"),
        ("lines", "devices", "cuda:0"),
        ("resnet", "backend", "native"),
    ],
)
def test_a_run_needs_a_backend_that_evaluates_its_network(
    tmp_path, capsys, kind, name, value
):
    words = ["train", "gomoku/5", "--games", "0", "--out", str(tmp_path / "run")]
    for setting in (f"net.kind={kind}", f"inference.{name}={value}"):
        words += ["--set", setting]
    assert main([*words, "--set", "agent.stages=[]"]) == 2
    message = f"inference.{name} ({value}) cannot evaluate net.kind {kind}"
    assert message in capsys.readouterr().err


def test_it_has_no_graph_to_export(tmp_path, capsys):
    run = publish(tmp_path / "run", "gomoku/6")
    path = tmp_path / "net.onnx"
    assert main(["data", "export-onnx", str(run.path), str(path)]) == 2
    assert "has no graph" in capsys.readouterr().err
    assert not path.exists()
