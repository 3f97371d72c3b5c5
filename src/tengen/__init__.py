"""tengen trains agents with reinforcement learning, in board games and environments.

Begin with these functions; ``help`` shows the details of each:

- ``tengen.train`` trains an agent, and returns its ``tengen.Run``.
- ``tengen.Run`` opens a run: its players, measurements, status and curves.
- ``tengen.load`` returns a player of a game, or an agent that acts in an environment.
- ``tengen.make_game`` and ``tengen.make_env`` return a game, or an environment with
  several copies.

The modules ``tengen.agents``, ``tengen.games``, ``tengen.envs`` and ``tengen.store``
are for agents, games and environments of your own, and for training loops that use only
the store. Importing this package does not import torch.

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
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "Run",
    "__version__",
    "agents",
    "envs",
    "games",
    "load",
    "make_env",
    "make_game",
    "store",
    "train",
]

if TYPE_CHECKING:
    from tengen import agents as agents
    from tengen import envs as envs
    from tengen import games as games
    from tengen import store as store
    from tengen.api import Run as Run
    from tengen.api import train as train
    from tengen.envs import make as make_env
    from tengen.games import make as make_game
    from tengen.play import load as load

# Maps each public name to where it is defined; imported when the name is first used.
_LAZY = {
    "Run": "tengen.api:Run",
    "load": "tengen.play:load",
    "make_env": "tengen.envs:make",
    "make_game": "tengen.games:make",
    "train": "tengen.api:train",
}
_MODULES = ("agents", "envs", "games", "store")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"tengen.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'tengen' has no attribute {name!r}")
    module, _, attribute = _LAZY[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
