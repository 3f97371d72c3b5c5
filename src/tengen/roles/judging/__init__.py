"""Roles that play matches with a run's models: ``gate`` and ``rate``."""
