"""Runs a Go model as a GTP 2 engine, for Sabaki, GoGui, Lizzie and matches."""
