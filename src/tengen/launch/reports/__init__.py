"""Combines the reports of all roles into the ``Progress`` of a run."""
