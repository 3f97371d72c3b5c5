"""The ranks of ``mpirun``: who has which role, and what they say to each other."""
