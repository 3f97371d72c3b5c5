"""Checks of the files that a run's config names outside the run, before it starts."""
