"""Components of sessions with other programs: line input, clocks, search limits."""
