"""Roles that play a run's models: the gate, ratings, games against a target."""
