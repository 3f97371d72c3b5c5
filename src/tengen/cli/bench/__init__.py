"""Measurements of the parts, one module each; ``tengen bench NAME``."""
