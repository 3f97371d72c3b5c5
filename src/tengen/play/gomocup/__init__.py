"""A model of gomoku as an engine of the Gomocup protocol, for its managers."""
