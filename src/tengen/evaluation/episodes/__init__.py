"""Evaluates an agent in an environment on complete episodes, and films them."""
