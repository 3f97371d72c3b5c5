"""Experience that goes by generations: whose games a pass has, and in which order."""
