"""Role ``selfplay``: plays generations of games, with forks and resignation."""
