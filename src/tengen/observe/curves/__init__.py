"""A run's curves: the points of its events, as a table, in TensorBoard and in W&B."""
