"""Role ``selfplay``: plays generations of games, including forks and resignation."""
