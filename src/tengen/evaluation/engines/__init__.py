"""External engines in matches: clients of their protocols, and sides of a match."""
