"""Configs of a store and its tables."""
