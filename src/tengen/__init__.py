"""tengen trains agents with reinforcement learning, in board games and environments.

A run is one loop around batched inference::

    while not stopped:                             # tengen.train(task) runs this
        for slot in slots:                         # actors: games or environments
            features = slot.step()                 # search or policy needs outputs
            outputs = inference(features)          # one model, one batch, many callers
            experience = slot.accept(outputs)      # a finished game or an unroll
            store.insert(experience)               # durable immediately
        for batch in store.sample(window):         # learner: loss, step, checkpoint
            learner.step(batch)
        if gate.accepts(learner.candidate()):      # all, or depending on a match
            inference.use(models.publish())        # immutable and numbered

``tengen.train`` trains an agent. ``tengen.load`` returns a player of a game, or an
agent that acts in an environment. ``tengen.games.make`` returns a game. Importing this
package does not import torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = ["__version__", "games", "load", "train"]

if TYPE_CHECKING:
    from tengen import games as games
    from tengen.play import load as load
    from tengen.recipes import train as train

# Maps each public name to its module, which is imported when the name is first used.
_LAZY = {"games": "", "load": "tengen.play", "train": "tengen.recipes"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'tengen' has no attribute {name!r}")
    if not _LAZY[name]:
        return importlib.import_module(f"tengen.{name}")
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
