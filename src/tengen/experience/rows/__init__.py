"""Rows of games as a learner draws them: the window, and files drawn ahead."""
