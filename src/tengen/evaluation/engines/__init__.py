"""External engines as players of a match: clients of their protocols, and sides."""
