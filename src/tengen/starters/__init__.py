"""Files to begin with: a small game and a small environment that work and train.

``tengen game new`` and ``tengen env new`` write them under a name of the user's. What
they are made from are the ``.txt`` files here.
"""

from tengen.starters.files import ENVIRONMENT, GAME, Starter, write_starter

__all__ = ["ENVIRONMENT", "GAME", "Starter", "write_starter"]
