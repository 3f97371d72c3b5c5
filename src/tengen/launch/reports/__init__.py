"""Combines the reports of all roles into the one Progress that a run shows."""
