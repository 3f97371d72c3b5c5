"""Roles that play matches of a run's models: gate and ratings."""
