"""Options of ``tengen bench`` that are refused before anything is measured."""

import pytest

from tengen import cli
from tengen.bench import selfplay
from tengen.run import available_cores


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("search --simulations 0", "simulations (0) must be 1 to 16777216; "),
        ("search --simulations -5", "simulations (-5) must be 1 to"),
        ("search --simulations 99999999999", "simulations (99999999999) must be 1 to"),
        ("search --simulations x", "argument --simulations: invalid int value: 'x'"),
        ("search --game chess", "must be tictactoe, connect4 or gomoku/5"),
        ("search --policy best", "argument --policy: invalid choice: 'best'"),
        ("selfplay --cores 0", f"cores (0) must be 1 to {available_cores()}; leave"),
        ("selfplay --cores -1", f"cores (-1) must be 1 to {available_cores()}; leave"),
        ("selfplay --cores 99999", "cores (99999) must be 1 to"),
        ("selfplay --simulations 0", "full_simulations (0) must be 1 to 16777216; "),
        ("selfplay --slots 0", "num_slots (0) must be 1 to 4096; "),
        ("selfplay --slots 99999", "num_slots (99999) must be 1 to 4096; "),
        ("selfplay --cache-mib -1", "cache_mib (-1) must be 0 to 1048576; "),
        ("selfplay --cache-mib 9999999999", "cache_mib (9999999999) must be 0 to"),
        ("selfplay --net big", "net (big) must be BLOCKSxCHANNELS; "),
        ("selfplay --net 2x7", "num_channels (7) must be a multiple of 4 from 8 to"),
        ("selfplay --game chess", "must be tictactoe, connect4 or gomoku/5"),
        ("selfplay --backend tpu", "argument --backend: invalid choice: 'tpu'"),
        ("fast", "invalid choice: 'fast'"),
    ],
)
def test_refused_with_one_line(capsys, words, message):
    assert cli.main(["bench", *words.split()]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_net_is_refused_before_anything_is_made(capsys, monkeypatch):
    monkeypatch.setattr(selfplay, "_Bench", None)
    assert cli.main(["bench", "selfplay", "--net", "6y96"]) == 2
    assert "net (6y96) must be BLOCKSxCHANNELS; " in capsys.readouterr().err
