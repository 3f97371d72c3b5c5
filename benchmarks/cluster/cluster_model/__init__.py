"""A discrete-event model of clusters that train agents; see ``simulate_cluster.py``."""
