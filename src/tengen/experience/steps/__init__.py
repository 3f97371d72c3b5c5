"""Store tables of environment steps: item layout, writers, clients and memory plan."""
