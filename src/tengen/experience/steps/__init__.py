"""Steps of environments as items of a store table, and who writes them."""
