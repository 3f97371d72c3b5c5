"""A model of Go as a GTP 2 engine: for Sabaki, GoGui, Lizzie and matches."""
