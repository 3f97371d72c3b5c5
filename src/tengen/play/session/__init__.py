"""Components of sessions with other programs: line input, clocks, limited searches."""
