"""Prints the best moves of a position."""

import tengen

if __name__ == "__main__":
    with tengen.Run("runs/go/9").player() as player:
        analysis = player.analyse([40, 41], simulations=400)
        for action in sorted(analysis.actions, key=lambda one: -one.visits)[:5]:
            print(action.action, action.visits, action.prior, action.value_to_play)
