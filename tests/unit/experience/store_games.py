"""Random finished games as records, and segments made of them."""

import random
from typing import Any

from numpy.typing import NDArray

import tengen.games
from tengen import _core
from tengen.experience import ExperienceWriter

Columns = dict[str, NDArray[Any]]

_NOT_FOR_ROWS = (
    "game_index",
    "model",
    "num_simulations",
    "num_switches",
    "switch_ply",
    "switch_model",
)


def random_game(name, index, generation=0, seed=0, variant=""):
    """A game of random moves with random targets, a pure function of the arguments."""
    rng = random.Random(f"{name} {index} {generation} {seed}")
    state = tengen.games.make(name).new_state(variant)
    num_opening = rng.randrange(4)
    opening = []
    plies = []
    while not state.is_terminal():
        legal = state.legal_actions()
        action = rng.choice(legal)
        if len(opening) < num_opening:
            opening.append(action)
        else:
            plies.append(_random_ply(rng, legal, action))
        state.apply(action)
    record = _core.GameRecord()
    record.generation, record.game_index, record.model = generation, index, 3
    record.variant = variant
    record.outcome = {1.0: 1, -1.0: 2, 0.0: 3}[state.returns()[0]]
    _add_leads(random.Random(f"lead {name} {index} {generation} {seed}"), plies)
    record.opening, record.plies = opening, plies
    return record


def _add_leads(rng, plies):
    for ply in plies:
        if rng.random() < 0.3:
            ply.lead = rng.choice([-32767, 32767, rng.randrange(-800, 800)])


def _random_ply(rng, legal, action):
    ply = _core.PlyRecord()
    ply.action = action
    ply.root_value = rng.randrange(-256, 257) / 256  # exact in 16 bits
    ply.value_weight = rng.choice([0.0, 0.5, 1.0])
    ply.num_simulations = rng.randrange(1, 100)
    if rng.random() < 0.5:
        ply.policy_weight = 1.0
        chosen = rng.sample(legal, rng.randrange(1, min(len(legal), 12) + 1))
        ply.policy = [(a, rng.randrange(1, 60)) for a in sorted(chosen)]
    return ply


def num_rows(record):
    """How many training rows the game gives."""
    return sum(p.policy_weight > 0 or p.value_weight > 0 for p in record.plies)


def write_generation(
    experience,
    generation,
    num_games,
    *,
    name="tictactoe",
    writer="selfplay-0",
    incarnation=None,
):
    """Seals a generation of random games and returns the segment."""
    number = generation if incarnation is None else incarnation
    with ExperienceWriter(experience / writer, number) as experience_writer:
        segment = experience_writer.open_games(generation, name)
        for index in range(num_games):
            segment.sink.put(random_game(name, index, generation))
        segment.close()
        sealed = experience_writer.seal(generation)
    assert sealed is not None
    return sealed


def segment_columns(records):
    """What `GameRows.add_segment` takes of one segment."""
    frames = [_core.encode_game(record) for record in records]
    columns = _core.merge_games(frames, records[0].generation)
    return {name: columns[name] for name in columns if name not in _NOT_FOR_ROWS}
