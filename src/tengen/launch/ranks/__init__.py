"""The ranks of ``mpirun``: which role is where, and the ranks' messages."""
