"""Games in files: journals, sealed segments, and the manifest that orders them."""
