"""What a call reports where all roles work at once."""
