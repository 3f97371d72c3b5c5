"""External engines as players of a match: protocol clients and match sides."""
