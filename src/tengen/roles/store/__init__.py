"""The commands of a store by itself: ``tengen store``, ``top`` and ``replicate``."""
