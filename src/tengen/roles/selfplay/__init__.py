"""Role ``selfplay``: generations of games, forks, and whether resigning is safe."""
