"""Standalone roles: the commands, the log, and the pause while the disk is full."""
