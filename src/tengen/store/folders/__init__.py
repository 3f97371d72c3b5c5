"""The folders of a store, on the host and on a disk, and the settings kept in them."""
