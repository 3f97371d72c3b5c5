"""Modules of the Ray launcher: connection, table of processes, and Ray actors."""
