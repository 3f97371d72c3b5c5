"""Role ``actor``: steps environments for a learner in this or another process."""
