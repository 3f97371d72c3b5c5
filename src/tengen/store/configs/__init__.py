"""What a store and its tables are made from."""
