"""A session of a model that is shown other planes than tengen's own."""

from tengen.games.go_rules import write_vertex

TASK = "go/5/nosuicide/planes=minigo"


def test_a_game_is_what_its_searches_choose(ask, make_player):
    player, moves, answers = make_player(TASK), [], []
    for _ in range(8):
        moves.append(player.choose(moves, simulations=8))
        answers.append(f"= {write_vertex(moves[-1], 5, 5)}")
    assert ask(*["genmove b", "genmove w"] * 4, task=TASK) == answers


def test_a_session_keeps_the_planes_of_its_model(ask, make_player, tmp_path):
    """With another komi, and in a game that was loaded."""
    file = tmp_path / "a.sgf"
    *_, loaded, moved, shown = ask(
        "komi 0.5",
        "play b A1",
        "play w A2",
        "play b B2",
        f"printsgf {file}",
        "clear_board",
        f"loadsgf {file}",
        "genmove w",
        "showboard",
        task=TASK,
    )
    assert loaded == "="
    player = make_player("go/5/nosuicide/komi=0.5/planes=minigo")
    best = player.choose([20, 15, 16], simulations=8)
    assert moved == f"= {write_vertex(best, 5, 5)}"
    assert "go/5/nosuicide/komi=0.5/planes=minigo, Black" in shown
    assert "planes" not in file.read_text()


def test_a_smaller_board_has_the_planes_of_the_larger(ask, make_player):
    """Of a network that was trained for several boards."""
    player = make_player(TASK, mixed_sizes=True)
    small = player.playing("go/4/nosuicide/plies=1444/planes=minigo")
    best = small.choose([], simulations=8)
    answers = ask("boardsize 4", "genmove b", task=TASK, mixed_sizes=True)
    assert answers == ["=", f"= {write_vertex(best, 4, 4)}"]
