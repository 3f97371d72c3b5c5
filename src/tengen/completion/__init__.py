"""Completion in shells: scripts of the command line's own table, without Python."""
