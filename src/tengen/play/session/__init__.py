"""Sessions with other programs: line input, clocks and search limits."""
