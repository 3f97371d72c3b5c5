"""Role ``actor``: steps environments, for a learner in this process or elsewhere."""
