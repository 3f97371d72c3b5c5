"""``tengen doctor``: what this machine has, what will be used of it, and why."""
