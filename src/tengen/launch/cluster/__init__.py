"""What the Ray launcher knows of a cluster, and what it has there."""
