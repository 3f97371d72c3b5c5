"""Programs that play, as sides of matches: clients of their protocols, and seats."""
