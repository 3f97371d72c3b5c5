import pytest

from tengen import _core
from tengen.errors import UsageError
from tengen.evaluation import MctsPlayer, RandomPlayer, fixed_player, open_player
from tengen.models import ModelExporter, ModelMeta, publish_model
from tengen.nets import MlpConfig
from tengen.run import NumberedFolder
from tengen.tensors import Signature, TensorSpec


def test_fixed_players_by_word():
    assert open_player("random") == RandomPlayer()
    assert open_player("mcts:800") == MctsPlayer(800)
    assert open_player("mcts:800").name == "mcts:800"


@pytest.mark.parametrize(
    "word", ["mcts", "mcts:", "mcts:0", "mcts:-3", "mcts:many", "mcts:" + "9" * 5000]
)
def test_mcts_needs_a_number_of_playouts(word):
    with pytest.raises(UsageError, match=r"player \(mcts.*try mcts:1000"):
        open_player(word)


@pytest.mark.parametrize("word", ["gtp:gnugo --mode gtp", 'gomocup:"pbrain-x"'])
def test_outside_engines_are_no_fixed_players(word):
    with pytest.raises(UsageError, match=r"outside engine, which only tengen match"):
        fixed_player(word)


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
    with pytest.raises(UsageError, match=r"environment CartPole-v1 and plays no board"):
        open_player(str(model.path))


def test_a_word_that_names_nothing(tmp_path):
    with pytest.raises(UsageError, match="neither a run directory"):
        open_player(str(tmp_path / "nothing"))


def test_native_forms(hash_player):
    network = hash_player("connect4").to_native(33)
    assert network.kind == _core.PlayerKind.NETWORK
    assert network.num_simulations == 33
    mcts = MctsPlayer(7).to_native(33)
    assert (mcts.kind, mcts.num_simulations) == (_core.PlayerKind.MCTS, 7)
    assert RandomPlayer().to_native(33).kind == _core.PlayerKind.RANDOM
