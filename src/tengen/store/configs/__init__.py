"""Config classes of a store and its tables."""
