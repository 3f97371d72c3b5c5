"""A role by itself: its command, its log, and its waiting while the disk is full."""
