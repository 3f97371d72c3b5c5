"""tengen trains agents by reinforcement learning at the full speed of the machine.

Everything meets at one centre, batched inference::

    while not stopped:                             # tengen.train(task) runs this
        for slot in slots:                         # actors: games or environments
            features = slot.step()                 # search or policy asks for a value
            answers = inference(features)          # one model, one batch, many callers
            experience = slot.accept(answers)      # a finished game, an unroll
            store.insert(experience)               # durable at once
        for batch in store.sample(window):         # learner: loss, step, checkpoint
            learner.step(batch)
        if gate.accepts(learner.candidate()):      # every one, or by a match
            inference.use(models.publish())        # immutable and numbered

``tengen.train`` trains an agent. ``tengen.load`` returns a player of a game, or an
agent that acts in an environment. ``tengen.games.make`` returns a game. Importing this
package imports no torch.
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

# Public name -> the module that holds it, imported when the name is first used.
_LAZY = {"games": "", "load": "tengen.play", "train": "tengen.recipes"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'tengen' has no attribute {name!r}")
    if not _LAZY[name]:
        return importlib.import_module(f"tengen.{name}")
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
