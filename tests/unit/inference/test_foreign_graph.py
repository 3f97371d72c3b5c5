"""An ONNX network of another program against its source and against tengen's own."""

import numpy as np
import onnx
import pytest
import torch

from tengen import games
from tengen.errors import UsageError
from tengen.evaluation import TargetConfig, play_match
from tengen.evaluation.players import RandomPlayer
from tengen.inference import allocate
from tengen.inference.foreign_graph import ForeignGraph
from tengen.minigo.opponent import (
    checked_opponent,
    open_opponent,
    opponent_digest,
)
from tengen.nets import board_of
from tengen.nets.minigo import MinigoConfig
from tengen.search import PlayConfig, SearchConfig
from tests.refusals import refused

TASK = "go/5/nosuicide/planes=minigo"

pytest.importorskip("openvino")


def write_graph(path, dtype=onnx.TensorProto.FLOAT, side=5):
    """A graph in the form of minigo's: probabilities, and the value of Black.

    The policy's logits are the sums of weights over the planes, the value the tanh of
    another sum.
    """
    rng = np.random.default_rng(3)
    num_actions = side * side + 1
    weights = {
        "policy_weights": rng.normal(size=(13 * side * side, num_actions)),
        "value_weights": rng.normal(size=(13 * side * side, 1)),
    }
    helper = onnx.helper
    nodes = [
        helper.make_node("Cast", ["pos_tensor"], ["x"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Flatten", ["x"], ["flat"]),
        helper.make_node("MatMul", ["flat", "policy_weights"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["policy_output"], axis=1),
        helper.make_node("MatMul", ["flat", "value_weights"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["value_output"]),
    ]
    initial = [
        onnx.numpy_helper.from_array(0.1 * array.astype(np.float32), name)
        for name, array in weights.items()
    ]
    graph = helper.make_graph(
        nodes,
        "minigo",
        [helper.make_tensor_value_info("pos_tensor", dtype, ["n", 13, side, side])],
        [
            helper.make_tensor_value_info("value_output", 1, ["n", 1]),
            helper.make_tensor_value_info("policy_output", 1, ["n", num_actions]),
        ],
        initial,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    onnx.save(model, str(path))


def test_a_graph_with_weights_in_other_files_is_refused(tmp_path):
    path = tmp_path / "graph.onnx"
    write_graph(path)
    onnx.save(
        onnx.load(str(path)),
        str(path),
        save_as_external_data=True,
        location="weights",
        size_threshold=0,
    )
    with refused(UsageError, "tensors"):
        ForeignGraph(path, board_of(games.open_game(TASK)).signature, 1)


def answers(path, planes):
    signature = board_of(games.open_game(TASK)).signature
    backend = ForeignGraph(path, signature, 1)
    inputs = allocate(signature.inputs, len(planes))
    outputs = allocate(signature.outputs, len(planes))
    inputs["planes"][:] = planes
    backend.bind(inputs, outputs).run(len(planes))
    return outputs["policy"], outputs["value"]


@pytest.fixture
def planes():
    return games.random_positions(games.open_game(TASK), 40, 3)


@pytest.mark.parametrize("dtype", [onnx.TensorProto.FLOAT, onnx.TensorProto.BOOL])
def test_it_answers_for_the_side_to_move(tmp_path, planes, dtype):
    path = tmp_path / "target.onnx"
    write_graph(path, dtype)
    policy, value = answers(path, planes)
    graph = onnx.load(str(path)).graph
    weights = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    flat = planes[:, 1:].reshape(len(planes), -1)
    wanted = np.exp(flat @ weights["policy_weights"])
    wanted /= wanted.sum(1, keepdims=True)
    found = np.exp(policy)
    np.testing.assert_allclose(found / found.sum(1, keepdims=True), wanted, rtol=1e-4)
    black = np.tanh(flat @ weights["value_weights"])[:, 0]
    is_black = planes[:, 9, 0, 0] == 1
    assert 0 < is_black.sum() < len(planes)
    sign = np.where(is_black, 1, -1)
    np.testing.assert_allclose(value, black * sign, rtol=1e-4, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_logits_are_taken_as_they_are(tmp_path, planes):
    """A network of our own, exported by torch with minigo's inputs and outputs."""
    net = MinigoConfig(num_blocks=1, num_channels=8, fc_width=8).build(
        board_of(games.open_game(TASK)).signature
    )
    net.requires_grad_(False)
    with torch.no_grad():
        wanted, _ = net.eval()(torch.from_numpy(planes))

    class Foreign(torch.nn.Module):
        def forward(self, x):
            planes = torch.cat([torch.ones_like(x[:, :1]), x], dim=1)
            policy, outcome = net(planes)
            share = outcome.softmax(1)
            return policy, (share[:, 0] - share[:, 2]) * (2 * x[:, 8, 0, 0] - 1)

    path = tmp_path / "own.onnx"
    shown = (torch.from_numpy(planes[:2, 1:]),)
    axes = {"planes": {0: "n"}}
    torch.onnx.export(
        *(Foreign(), shown, path),
        dynamo=False,
        input_names=["planes"],
        dynamic_axes=axes,
    )
    policy, _ = answers(path, planes)
    np.testing.assert_allclose(policy, wanted.numpy(), rtol=1e-3, atol=1e-4)
    # Without axes torch writes the two rows into the graph's midst.
    torch.onnx.export(Foreign(), shown, path, dynamo=False)
    with refused(UsageError, "number of rows"):
        checked_opponent(TargetConfig(opponent=f"onnx:{path}"), TASK)


def fix_rows(path, num_rows):
    """Gives a graph a fixed number of rows, as torch's export does by itself."""
    model = onnx.load(str(path))
    for one in (*model.graph.input, *model.graph.output):
        one.type.tensor_type.shape.dim[0].dim_value = num_rows
    onnx.save(model, str(path))
    return model


@pytest.mark.parametrize("num_rows", [1, 2])
def test_a_graph_of_a_fixed_batch_answers_any(tmp_path, planes, num_rows):
    path = tmp_path / "target.onnx"
    write_graph(path)
    wanted = answers(path, planes)
    fix_rows(path, num_rows)
    config = checked_opponent(TargetConfig(opponent=f"onnx:{path}"), TASK)
    for found, right in zip(answers(path, planes), wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
    player = open_opponent(config, TASK, PlayConfig(), 1)
    report = play_match(
        games.open_game(TASK), player, RandomPlayer(), num_games=4, num_simulations=4
    )
    assert report.tally.num_games == 4


def test_a_graph_that_has_its_batch_in_its_midst_is_refused(tmp_path):
    path = tmp_path / "target.onnx"
    config = TargetConfig(opponent=f"onnx:{path}")
    rule = "any number of rows"
    # Its sides are written down, as where a view of one row was traced.
    write_graph(path)
    model = fix_rows(path, 1)
    shape = onnx.numpy_helper.from_array(np.array([1, -1], np.int64), "shape")
    model.graph.initializer.append(shape)
    flatten = next(node for node in model.graph.node if node.op_type == "Flatten")
    flatten.op_type = "Reshape"
    flatten.input.append("shape")
    onnx.save(model, str(path))
    with refused(UsageError, "opponent", rule):
        checked_opponent(config, TASK)
    # All rows are in each other's answer.
    write_graph(path)
    model = onnx.load(str(path))
    softmax = next(node for node in model.graph.node if node.op_type == "Softmax")
    softmax.attribute[0].i = 0
    onnx.save(model, str(path))
    with refused(UsageError, "opponent", rule):
        checked_opponent(config, TASK)


def test_other_shapes_are_refused(tmp_path, capfd):
    path = tmp_path / "target.onnx"
    config = TargetConfig(opponent=f"onnx:{path}")
    with refused(UsageError, "file"):
        checked_opponent(config, TASK)
    path.write_bytes(b"no graph")
    with refused(UsageError, "OpenVINO"):
        checked_opponent(config, TASK)
    # The error is the only line that a user sees.
    assert capfd.readouterr().err == ""
    write_graph(path)
    path.write_bytes(path.read_bytes()[:-500])
    with refused(UsageError, "opponent", "OpenVINO"):
        checked_opponent(config, TASK)
    write_graph(path, side=7)
    with refused(UsageError, "[13, 5, 5]"):
        checked_opponent(config, TASK)
    write_graph(path)
    with refused(UsageError, "planes=minigo"):
        checked_opponent(config, "go/5")
    write_graph(path, onnx.TensorProto.INT64)
    with refused(UsageError, "float32, bool or uint8"):
        checked_opponent(config, TASK)


def test_it_plays_as_a_target(tmp_path):
    path = tmp_path / "target.onnx"
    write_graph(path)
    config = checked_opponent(TargetConfig(opponent=f"onnx:{path}"), TASK)
    play = PlayConfig(search=SearchConfig(policy="minigo"))
    player = open_opponent(config, TASK, play, 1)
    game = games.open_game(TASK)
    report = play_match(
        game, player, RandomPlayer(), num_games=4, num_simulations=8, opening_plies=0
    )
    assert report.tally.num_games == 4
    assert len(opponent_digest(config)) == 64
