"""Roles that learn: batches drawn ahead, steps by one or several, models exported."""
