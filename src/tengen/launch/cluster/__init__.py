"""The parts of the Ray launcher: the cluster, its table of processes, its actors."""
