"""Trains a player of a game for ten minutes, and measures it."""

import tengen

if __name__ == "__main__":
    run = tengen.train("gomoku/9", minutes=10)
    print(run.path, run.result["reason"])
    print(run.evaluate(100, against="mcts:1000"))
