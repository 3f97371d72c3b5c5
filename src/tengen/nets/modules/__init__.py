"""The networks as torch modules; importing any file here imports torch."""
