"""Evaluates agents in environments on complete episodes, and records videos."""
