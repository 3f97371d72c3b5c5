"""The torch side of the networks; what imports a module of it imports torch."""
