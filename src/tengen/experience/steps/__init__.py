"""Environment steps as items of a store table, and the writers of steps."""
