"""Training rows of games, sampled from a window or read from files of shuffled rows."""
