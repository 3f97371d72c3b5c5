import pytest

from tengen.bundled import Strength, bundled_names, read_manifest
from tengen.serve.players import strength_sentence


def row(what, value, number):
    return Strength(
        what=what, value=value, low=0.0, high=1.0, number=number, command="measure"
    )


@pytest.mark.parametrize(
    ("what", "value", "number", "sentence"),
    [
        (
            "score against GNU Go level 10, 400 simulations",
            0.9,
            20,
            "Beats GNU Go level 10 in 18 of 20 games.",
        ),
        (
            "score against GNU Go level 10",
            0.925,
            20,
            "Scores 18.5 of 20 points against GNU Go level 10.",
        ),
        (
            "score against mcts:1000, 64 simulations",
            1.0,
            100,
            "Beats a search with 1,000 random playouts in 100 of 100 games.",
        ),
        # Draws may be among these.
        (
            "score against random, 1 simulation",
            0.98,
            50,
            "Scores 49 of 50 points against random moves.",
        ),
        (
            "moves that an exact solver calls optimal, 64 simulations",
            0.982,
            1500,
            "Plays the best move in 1,473 of 1,500 positions, according to an exact "
            "solver.",
        ),
        (
            "lines not lost, against every reply, 64 simulations",
            1.0,
            659,
            "Never loses.",
        ),
        (
            "lines not lost, against every reply",
            0.99,
            200,
            "Does not lose 198 of 200 lines of play.",
        ),
        ("points at darts", 0.5, 10, None),
    ],
)
def test_a_measurement_is_a_sentence(what, value, number, sentence):
    assert strength_sentence([row(what, value, number)]) == sentence


def test_the_first_known_wording_counts():
    rows = [row("points at darts", 0.5, 10), row("score against random", 1.0, 10)]
    assert strength_sentence(rows) == "Beats random moves in 10 of 10 games."
    assert strength_sentence([]) is None


@pytest.mark.parametrize("name", bundled_names())
def test_every_bundled_player_has_one(name):
    assert strength_sentence(read_manifest(name).strength) is not None
