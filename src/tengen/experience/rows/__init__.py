"""Rows of games for learners, from the window or from files of shuffled rows."""
