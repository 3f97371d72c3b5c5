"""What an agent scores in an environment: whole episodes, and films of them."""
