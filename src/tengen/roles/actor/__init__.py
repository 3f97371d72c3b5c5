"""Role ``actor``: environments stepped here, or for a learner elsewhere."""
