"""Game files: journals, sealed segments, and the manifest that orders the segments."""
