"""Role ``inference``, which evaluates the network for actors, and its command."""
