"""Experience by generations: which games a pass draws from, and in which order."""
