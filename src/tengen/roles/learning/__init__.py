"""Roles that learn: shuffle, learn, follow and export."""
