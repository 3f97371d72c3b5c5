"""Runs a gomoku model as an engine of the Gomocup protocol, for tournament managers."""
