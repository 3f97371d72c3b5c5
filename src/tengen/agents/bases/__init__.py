"""The base classes of agents, their default settings, and functions that they share."""
