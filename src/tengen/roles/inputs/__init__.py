"""What a run's config names outside the run: looked at before anything starts."""
