"""A role by itself: its command, what it says, and how it waits for a full disk."""
