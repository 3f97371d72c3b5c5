"""The torch modules of the networks; importing any of them imports torch."""
