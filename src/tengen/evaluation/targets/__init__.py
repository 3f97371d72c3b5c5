"""Models of a run in order against a target: who plays what, and what came of it."""
