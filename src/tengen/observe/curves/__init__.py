"""A run's curves, computed from its events: as a table, in TensorBoard and in W&B."""
