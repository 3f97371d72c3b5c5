"""From the reports of roles to what a run shows: one Progress, whoever told it."""
