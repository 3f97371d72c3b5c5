"""The configs of a store and its tables."""
