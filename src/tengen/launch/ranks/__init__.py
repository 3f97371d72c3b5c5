"""The placement of roles on the ranks of ``mpirun``, and the ranks' messages."""
