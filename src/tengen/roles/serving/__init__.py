"""Role ``inference``, which answers actors, and its command."""
