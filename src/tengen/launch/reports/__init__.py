"""Combines the reports of all roles into a run's ``Progress``."""
