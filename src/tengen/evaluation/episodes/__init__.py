"""Plays complete episodes to evaluate agents in environments, and records videos."""
