"""The folders of a store: of the host, of the disk, and what they tell of it."""
