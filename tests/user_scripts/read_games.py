"""Counts the outcomes of the games of self-play."""

from collections import Counter

import tengen
from tengen.experience import read_table

if __name__ == "__main__":
    run = tengen.Run("runs/connect4")
    outcomes = read_table(run.path, "games")["outcome"]
    print(Counter(int(outcome) for outcome in outcomes))
