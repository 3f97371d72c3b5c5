"""The networks themselves; importing a module of this package imports torch."""
