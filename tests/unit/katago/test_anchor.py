"""KataGo networks as anchors of a rating ladder."""

from pathlib import Path

from tengen import games
from tengen.errors import UsageError
from tengen.evaluation import (
    LadderConfig,
    ModelPlayer,
    measure_anchors,
    read_records,
)
from tengen.evaluation.ratings.anchors import fixed_players, opened_anchor
from tengen.evaluation.target_config import TargetConfig
from tengen.minigo.opponent import (
    checked_opponent,
    open_opponent,
    opponent_digest,
)
from tengen.run import RunDirectory, file_sha256
from tengen.search import PlayConfig
from tests.refusals import refused

FILE = Path(__file__).parents[2] / "golden" / "katago" / "tiny-v8.bin.gz"
WORDS = ("random", f"katago:{FILE}")


def test_an_anchor_is_its_file_and_its_simulations(tmp_path):
    assert LadderConfig(anchors=WORDS).anchors == WORDS
    few, more = (fixed_players(WORDS, count)[1].name for count in (3, 4))
    assert few.endswith(":3")
    assert more.endswith(":4")
    assert few.removesuffix("3") == more.removesuffix("4")
    copy = tmp_path / "copy.bin.gz"
    copy.write_bytes(FILE.read_bytes())
    assert fixed_players(["random", f"katago:{copy}"], 3)[1].name == few
    with refused(UsageError, "katago:"):
        fixed_players(["random", "katago:"])


def test_it_is_measured_once_and_kept(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    game, players = games.make("go/4x5/komi=0.5"), fixed_players(WORDS, 2)
    ladder = measure_anchors(run, game, players, num_games=2, num_simulations=2)
    assert [anchor.player for anchor in ladder] == players
    (record,) = read_records(run)
    assert (record.a, record.b) == (players[1].name, "random")
    assert record.wins_a + record.draws + record.wins_b == 2
    assert measure_anchors(run, game, players, num_simulations=2) == ladder
    assert len(list(run.eval.iterdir())) == 1


def test_a_file_that_is_gone_is_one_line_when_it_plays():
    _, gone = fixed_players(["random", "katago:gone.bin.gz"])
    assert gone.name == "katago:gone.bin.gz"
    with refused(UsageError, "gone.bin.gz"):
        opened_anchor(gone, games.make("go/5"), 1)
    _, anchor = fixed_players(WORDS)
    with refused(UsageError, "connect4"):
        opened_anchor(anchor, games.make("connect4"), 1)


def test_it_is_a_target_on_any_board(monkeypatch):
    monkeypatch.chdir(FILE.parent)
    config = checked_opponent(TargetConfig(opponent=f"katago:{FILE.name}"), "go/5")
    assert config.opponent == f"katago:{FILE}"
    player = open_opponent(config, "go/5", PlayConfig(), 1)
    assert isinstance(player, ModelPlayer)
    assert (player.task, player.frame) == ("go/5", "go/5/planes=katago")
    assert opponent_digest(config) == file_sha256(FILE)
    with refused(UsageError, "connect4"):
        checked_opponent(config, "connect4")
