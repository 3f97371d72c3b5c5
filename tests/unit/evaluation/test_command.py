import dataclasses
import json

import pytest

from tengen import _core, cli
from tengen.errors import UsageError
from tengen.evaluation import MctsPlayer, RandomPlayer, open_player
from tengen.evaluation.command import shared_task
from tengen.models import ModelExporter, ModelMeta, publish_model
from tengen.nets import MlpConfig
from tengen.run import NumberedFolder, available_cores
from tengen.tensors import Signature, TensorSpec
from tests.refusals import refused


def run(capsys, *words):
    code = cli.main(["match", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_match_as_json(capsys):
    words = ("mcts:30", "random", "--game", "connect4", "--games", "7", "--json")
    code, out, _ = run(capsys, *words)
    content = json.loads(out.splitlines()[-1])
    assert code == 0
    assert content["games"] == 7
    assert content["score_a"] > 0.5
    assert run(capsys, *words, "--threads", "3")[1] == out


def test_a_match_for_people(capsys):
    code, out, _ = run(
        capsys, "mcts:30", "random", "--game", "tictactoe", "--games", "10"
    )
    assert code == 0
    assert "A mcts:30" in out
    assert "score of A" in out
    assert "Elo of A minus B +" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["random", "random"], "add --game NAME"),
        (["random", "random", "--game", "chess"], "chess"),
        (["random", "nothing-here"], "must be a run directory"),
        (["random", "gomocup:x"], "add --game NAME"),
        (["random", "gomocup:x", "--game", "connect4"], "gomoku"),
        (["random", "random", "--game", "tictactoe", "--games", "0"], "num_games (0)"),
        (["random", "random", "--game", "tictactoe", "--games", "x"], "arguments"),
        (["random", "random", "--game", "tictactoe", "--seed", "-1"], "seed (-1)"),
        (["random", "random", "--threads", "0"], "threads (0) must be 1 to"),
        (["random", "random", "--tree-threads", "0"], "tree-threads (0) must be N"),
        (["random", "random", "--tree-threads", "1,2,3"], "tree-threads (1,2,3)"),
        (["random", "random", "--threads", "1", "--tree-threads", "1,2"], "at most 1"),
        (["random", "mcts:9", "--devices", "cpu"], "devices (cpu)"),
        *(
            (["random", word], f"player ({word}) must")
            for word in ("mcts", "mcts:", "mcts:0", "mcts:-3", "mcts:many")
        ),
        (["random", "mcts:" + "9" * 5000], "player (mcts:999"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(capsys, words, message):
    code, out, err = run(capsys, *words)
    assert code == 2
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1


def test_threads_beyond_the_cores_are_one_line_and_the_match_goes_on(capsys):
    cores = available_cores()
    words = ("mcts:5", "random", "--game", "tictactoe", "--games", "4", "--json")
    expected = run(capsys, *words)[1]
    for option in ("--threads", "--tree-threads"):
        code, out, err = run(capsys, *words, option, str(cores + 1))
        assert (code, out) == (0, expected)
        assert err.count("\n") == 1
        assert (
            f"tengen: threads ({cores + 1}) must be at most {cores}, the cores" in err
        )


def test_networks_for_several_games_play_what_is_asked_for(hash_player):
    mixed = dataclasses.replace(hash_player("go/5", "runs/a"), mixed_sizes=True)
    assert shared_task(mixed, RandomPlayer(), None) == "go/5"
    assert shared_task(mixed, RandomPlayer(), "go/4") == "go/4"
    assert shared_task(mixed, hash_player("go/4"), "go/4") == "go/4"
    with refused(UsageError, "go/4", "hash", "go/5", "runs/a"):
        shared_task(mixed, hash_player("go/4"), None)


def test_the_game_comes_from_the_models(hash_player):
    model = hash_player("connect4", "runs/a")
    assert shared_task(model, RandomPlayer(), None) == "connect4"
    assert shared_task(MctsPlayer(3), model, "connect4") == "connect4"
    assert shared_task(RandomPlayer(), RandomPlayer(), "gomoku/9") == "gomoku/9"
    with refused(UsageError, "gomoku/9", "runs/b", "connect4"):
        shared_task(model, hash_player("gomoku/9", "runs/b"), None)
    with refused(UsageError, "--game"):
        shared_task(model, RandomPlayer(), "tictactoe")


def test_an_agent_of_an_environment_plays_no_board_game(tmp_path):
    net = MlpConfig(num_layers=1, num_units=4)
    signature = Signature(
        inputs={"observation": TensorSpec(shape=(4,))},
        outputs={"policy": TensorSpec(shape=(2,)), "value": TensorSpec()},
    )
    meta = ModelMeta(
        task="CartPole-v1",
        agent="vtrace",
        net=net,
        signature=signature,
        generation=0,
        num_steps=0,
        num_samples=0,
        sha256={},
    )
    state = net.build(signature).state_dict()
    tensors = {name: tensor.numpy() for name, tensor in state.items()}
    folder = NumberedFolder(tmp_path)
    model = publish_model(folder.entry(0), meta, tensors, ModelExporter())
    with refused(UsageError, "CartPole-v1"):
        open_player(str(model.path))


def test_native_forms(hash_player):
    network = hash_player("connect4").to_native(33)
    assert network.kind == _core.PlayerKind.NETWORK
    assert network.num_simulations == 33
    mcts = open_player("mcts:7").to_native(33)
    assert (mcts.kind, mcts.num_simulations) == (_core.PlayerKind.MCTS, 7)
    assert open_player("random").to_native(33).kind == _core.PlayerKind.RANDOM
