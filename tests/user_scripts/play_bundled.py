"""Plays a game of two levels of a bundled player against each other."""

import tengen
from tengen.play import Player

if __name__ == "__main__":
    state = tengen.make_game("connect4").new_state()
    weak, strong = tengen.load("connect4", level=1), tengen.load("connect4")
    assert isinstance(weak, Player)
    assert isinstance(strong, Player)
    moves: list[int] = []
    with weak, strong:
        while not state.is_terminal():
            player = strong if state.to_play == 0 else weak
            moves.append(player.choose(moves, simulations=100))
            state.apply(moves[-1])
    print(state.returns(), moves)
