"""Dead stones, according to the ownership that a network predicts."""

import numpy as np
import pytest

from tengen.play.forecast import Forecast


class Expecting:
    """A player that predicts the same owners for every position; 1 means Black."""

    def __init__(self, player, owners):
        self.player, self.owners, self.asked = player, owners, []

    def __getattr__(self, name):
        return getattr(self.player, name)

    def playing(self, name):
        self.player = self.player.playing(name)
        return self

    def forecast(self, moves):
        self.asked.append(list(moves))
        owners_to_play = -self.owners if len(moves) % 2 else self.owners
        return Forecast(owners_to_play.astype(np.float32), 0.0, 1.0, None)


@pytest.fixture
def statuses(make_player, talk_to):
    """Returns a function for the dead and alive chains, the score, and the queries."""

    def ask(owners, plays):
        player = Expecting(make_player("go/5"), owners)
        words = ("final_status_list dead", "final_status_list alive", "final_score")
        answers = talk_to(player).ask(*[f"play {move}" for move in plays], *words)
        assert all(answer.startswith("=") for answer in answers)
        return [answer[2:] for answer in answers[-3:]], player.asked

    return ask


PLAYS = ["b C3", "w A1", "b C2", "w B1", "b E5", "w E1"]


def owners_of(**points):
    owners = np.zeros((5, 5))
    for vertex, owner in points.items():
        owners[5 - int(vertex[1]), "ABCDE".index(vertex[0])] = owner
    return owners


def test_chains_that_are_surely_the_other_sides_are_dead(statuses):
    # A1 and B1 by their average; E1 not surely enough; E5 is White's.
    owners = owners_of(A1=0.7, B1=1.0, E1=0.79, C3=1.0, C2=1.0, E5=-0.9)
    (dead, alive, score), asked = statuses(owners, PLAYS)
    assert dead == "E5\nA1 B1"
    assert alive == "C3 C2\nE1"
    assert score == "W+7.5"
    assert asked[-1] == [12, 20, 17, 21, 4, 24]


def test_whoever_is_to_move_and_after_two_passes(statuses):
    owners = owners_of(A1=0.9, B1=0.9, E1=-1.0, C3=1.0, C2=1.0, E5=-0.5)
    for ending in ([], ["b pass"], ["b pass", "w pass"]):
        (dead, alive, _), asked = statuses(owners, [*PLAYS, *ending])
        assert dead == "A1 B1"
        assert alive == "E5\nC3 C2\nE1"
    assert asked[-1] == [12, 20, 17, 21, 4, 24]


def test_what_cannot_be_taken_is_alive(statuses):
    # Black has two eyes, A1 and C1.
    plays = ["b A2", "b B2", "b C2", "b D2", "b B1", "b D1", "w E5"]
    (dead, alive, score), _ = statuses(np.full((5, 5), -1.0), plays)
    assert dead == ""
    assert alive == "E5\nA2 B2 C2 D2 B1 D1"
    assert statuses(np.full((5, 5), -1.0), plays[:4])[0][:2] == ["A2 B2 C2 D2", ""]
    assert statuses(np.full((5, 5), 1.0), plays)[0][2] == score


def test_no_owners_no_dead_stones(ask):
    plays = [f"play {move}" for move in PLAYS]
    answers = ask(*plays, "final_status_list dead", "final_status_list alive")
    assert answers[-2:] == ["=", "= E5\nC3 C2\nA1 B1\nE1"]
