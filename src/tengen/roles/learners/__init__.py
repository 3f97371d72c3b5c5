"""Several learners of one run: one leads, the others follow it."""
