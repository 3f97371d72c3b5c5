"""A generation goes on with models that are published meanwhile.

The models are hashes of the position and their own number, so that whoever searches a
ply again finds the same only on the same model.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tengen import _core, games
from tengen.experience.games.journal import read_journal
from tengen.games import core_game
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, read_config, write_config
from tengen.roles.selfplay.role import SelfplayRole
from tengen.run import RunDirectory
from tests.unit.roles.selfplay.stub_models import Model, play_often, plays_on

LONG_S = 60
PLAYOUT_CAP = 4  # core/base/rng.h
GAMES = 10
SETTINGS = (
    f"agent.actor.games_per_generation={GAMES}",
    "agent.actor.search.policy=puct",
    "agent.actor.full_simulations=24",
    "agent.actor.cheap_simulations=8",
    "agent.actor.full_probability=0.4",
    "agent.actor.num_slots=6",
    "agent.actor.cache_mib=0",
)


class Switching:
    """Plays a generation in which models follow each other.

    Past some rows a model publishes the next one, and waits for it to be opened where
    it must not end the generation by itself.
    """

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        *settings: str,
        waits: bool = True,
    ) -> None:
        self.run = RunDirectory.create_or_resume(folder)
        config = override(make_config("connect4", None, None), [*SETTINGS, *settings])
        write_config(self.run, config)
        self.run.models.publish(1, lambda folder: None)
        self._waits = waits
        self.in_flight: list[list[bytes]] = []
        self._opened = {number: threading.Event() for number in (1, 2, 3)}
        plays_on(monkeypatch, self._open, self._play)

    def _open(self, directory: Path, *_: Any, **__: Any) -> Model:
        number = int(directory.name)

        def after() -> None:
            if number < 3:
                self.run.models.publish(number + 1, lambda folder: None)
                if self._waits:
                    assert self._opened[number + 1].wait(LONG_S)

        self._opened[number].set()
        return Model(number, 700, after)

    def _play(self, *args: Any, **kwargs: Any) -> Any:
        report = play_often(*args, **kwargs)
        (queue,) = (arg for arg in args if isinstance(arg, _core.GameQueue))
        if queue.stopped:
            self.in_flight.append(queue.unfinished())
        return report

    def play(self, **context: Any) -> tuple[dict[str, Any], list[_core.GameRecord]]:
        """Plays it; returns the report and the games as they were recorded."""
        config = read_config(self.run)
        context = {"follow_models": True, **context}
        role = make_role("selfplay", config, self.run, RoleContext(**context))
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(SelfplayRole, "_seal", lambda *_: None)
                report = role.turn()
        finally:
            role.close()
        assert report is not None
        (journal,) = self.run.experience.glob("*/*/*.journal")
        frames = read_journal(journal).frames
        records = [_core.decode_game(frame) for frame in frames]
        return dict(report), sorted(records, key=lambda game: game.game_index)


def model_of(record: _core.GameRecord, ply: int) -> int:
    """The model that played a searched ply, by what is recorded."""
    switches = [(0, record.model), *record.switches]
    return [model for first, model in switches if first <= ply][-1]


def is_full(config: Any, record: _core.GameRecord, ply: int) -> bool:
    """Whether a ply was drawn to be searched fully; its weight may come of surprise."""
    number = len(record.opening) + ply
    draw = _core.Rng(
        config.seed, record.generation, record.game_index, number, PLAYOUT_CAP
    )
    return draw.uniform() < config.agent.actor.full_probability


def searched_again(
    config: Any, record: _core.GameRecord, ply: int, model: int
) -> _core.SearchResult:
    """Searches one ply anew, by itself, on one model."""
    actor = config.agent.actor
    request = _core.SearchRequest()
    request.explore = is_full(config, record, ply)
    request.num_simulations = (
        actor.full_simulations if request.explore else actor.cheap_simulations
    )
    request.seed = config.seed
    request.generation = record.generation
    request.game = record.game_index
    before = [*record.opening, *(p.action for p in record.plies[:ply])]
    request.ply = len(before)
    rules = core_game(games.make(config.task))
    session = _core.make_session(rules, actor.search.to_native())
    session.begin(before, request)
    port = session.port(0)
    while port.next():
        Model(model).answer(port.planes[0], port.policy[0], port.value[:1])
        port.done()
    return session.result


def assert_same(found: _core.SearchResult, ply: _core.PlyRecord) -> None:
    """To the bit: the value, the visits, and the policy target where there is one."""
    assert np.float32(found.root_value_to_play) == np.float32(ply.root_value)
    assert found.num_simulations == ply.num_simulations
    if ply.policy:
        policy = {a.action: np.float32(a.policy) for a in found.actions}
        top = max(policy.values())
        scaled = {
            action: int(share / top * np.float32(65535) + np.float32(0.5))
            for action, share in policy.items()
        }
        assert {a: mass for a, mass in scaled.items() if mass} == dict(ply.policy)


@pytest.mark.parametrize("reuse_tree", [True, False])
def test_each_ply_can_be_replayed_from_the_model_recorded_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reuse_tree: bool
) -> None:
    """With trees reused a cheap search depends on those before it, back to the last
    full one; each full search, and without reuse each search, stands by itself."""
    switching = Switching(
        tmp_path / "run", monkeypatch, f"agent.actor.reuse_tree={reuse_tree}"
    )
    report, records = switching.play()
    assert report["models"] == [1, 2, 3]
    config = read_config(switching.run)
    models = set()
    for record in records:
        for number, ply in enumerate(record.plies):
            if reuse_tree and not is_full(config, record, number):
                continue
            model = model_of(record, number)
            models.add(model)
            assert_same(searched_again(config, record, number, model), ply)
    assert models == {1, 2, 3}


def test_a_switch_loses_no_game_and_doubles_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    switching = Switching(tmp_path / "run", monkeypatch)
    report, records = switching.play()
    assert [game.game_index for game in records] == list(range(GAMES))
    assert report["num_games"] == GAMES
    assert report["num_gone_on_with"] == 0
    # Each game that was in flight is one that goes on, with the plies that it had.
    assert len(switching.in_flight) == 2
    for number, kept in enumerate(switching.in_flight):
        going_on = [
            game
            for game in records
            if number + 2 in [model for _, model in game.switches]
            and model_of(game, 0) <= number + 1
        ]
        assert len(kept) == len(going_on) > 0


@pytest.mark.parametrize(
    ("settings", "context"),
    [((), {"follow_models": False}), (("agent.actor.switch_models=false",), {})],
)
def test_models_are_not_switched_where_nobody_wants_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: tuple[str, ...],
    context: dict[str, Any],
) -> None:
    one = Switching(tmp_path / "one", monkeypatch, *settings, waits=False)
    report, alone = one.play(**context)
    assert one.run.models.numbers() == [1, 2]
    assert (report["model"], "models" in report) == (1, False)
    assert all(game.model == 1 and not game.switches for game in alone)
    # Before the first switch, and where there is none, the games are the same.
    other = Switching(tmp_path / "other", monkeypatch)
    for game, same in zip(other.play()[1], alone, strict=True):
        if game.model == 1:
            end = game.switches[0][0] if game.switches else len(game.plies)
            ours = [ply.action for ply in game.plies[:end]]
            assert ours == [ply.action for ply in same.plies[:end]]
