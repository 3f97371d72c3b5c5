"""The copies of all actors are numbered through, for what depends on the number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tengen.actors import Slots
from tengen.agents.dqn import Dqn
from tengen.inference import DriveStats
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, write_config
from tengen.roles.actor import role as actor_role
from tengen.roles.actor.links import Driven, Group
from tengen.run import RunDirectory

pytest.importorskip("gymnasium")

NUM_ACTORS, NUM_ENVS = 4, 3


class NoLink:
    """Neither a network nor experience."""

    def __init__(self, agent: Any, config: Any, run: Any, context: Any) -> None:
        self.layout = agent.layout({})
        self.groups = [
            Group(size, lambda columns, state: 0) for size in agent.actor.group_sizes()
        ]

    def drive(self, ports: Any) -> Driven:
        return Driven(DriveStats(), 0)

    def close(self) -> None:
        pass


def _acted(port: Any) -> int:
    port.begin(0)
    num_rows: int = port.next()
    port.done()
    return num_rows


def test_each_copy_of_all_actors_explores_by_an_epsilon_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ape-X's ladder is one ladder, and not one an actor."""
    monkeypatch.setattr(actor_role, "_link", NoLink)
    run = RunDirectory.create_or_resume(tmp_path / "run")
    config = override(
        make_config("CartPole-v1", "dqn", None),
        [
            f"launch.roles.actor.count={NUM_ACTORS}",
            f"agent.actor.num_envs={NUM_ENVS}",
            "inference.backend=torch",
            "inference.precision=fp32",
            "inference.batch_shape=dynamic",
        ],
    )
    write_config(run, config)
    given: list[Slots] = []
    act = Dqn.act

    def acting(self: Dqn, *args: Any) -> Any:
        given.append(args[3])
        return act(self, *args)

    monkeypatch.setattr(Dqn, "act", acting)
    for index in range(NUM_ACTORS):
        context = RoleContext(at_once=True, index=index)
        role: Any = make_role("actor", config, run, context)
        role.turn()
        # Its groups, too, take the places of one actor's copies.
        assert sum(_acted(port) for port in role._ports) == NUM_ENVS
        role.close()
    epsilons = np.concatenate([Dqn().epsilons(slots) for slots in given])
    total = NUM_ACTORS * NUM_ENVS
    expected = [0.4 ** (1 + 7 * i / (total - 1)) for i in range(total)]
    assert epsilons.tolist() == pytest.approx(expected)
