"""Small synthetic runs, made without training."""

import random

from tengen import _core, games
from tengen.evaluation import PlayedGame
from tengen.evaluation.played_game import games_jsonl, write_games
from tengen.experience import OpenSegment
from tengen.experience.games.segment import seal
from tengen.observe import EventWriter
from tengen.run import RunDirectory


def learned(step, loss, *, num_games=8, **fields):
    """Returns the event fields of a learning turn in a run of games."""
    return {
        "role": "learn",
        "turn_s": 1.0,
        "num_steps": 10,
        "total_steps": step,
        "loss": loss,
        "policy_loss": 0.7 * loss,
        "value_loss": 0.3 * loss,
        "policy_accuracy": 0.4,
        "value_accuracy": 0.6,
        "table": {"num_games": num_games, "num_rows": 9 * num_games},
        **fields,
    }


def write_events(run, steps, role="train"):
    """Writes turn events; returns the writer, so that the caller can continue."""
    writer = EventWriter(run, role, run.new_incarnation(role))
    for step in steps:
        writer.write("turn", **learned(step, 4.0 / (1 + step)))
        writer.write("turn", role="rate", rating=100.0 + step, rating_error=50.0)
        writer.write(
            "progress",
            generation=step,
            elapsed_s=1.0 * step,
            num_games=8 * step,
            rows_per_s=100.0,
            loss=4.0 / (1 + step),
            rating=100.0 + step,
            rating_error=50.0,
            verdict="self-play 80%: all is well",
        )
    return writer


def random_moves(task, seed, most=400):
    """Returns a game of random moves and its final position."""
    rng = random.Random(seed)
    state = games.make(task).new_state()
    moves = []
    while not state.is_terminal() and len(moves) < most:
        moves.append(rng.choice(state.legal_actions()))
        state.apply(moves[-1])
    return moves, state


def recorded(task, index, num_opening=1):
    """Returns a game as self-play records it; half of its plies have policy weight."""
    moves, state = random_moves(task, index)
    game = _core.GameRecord()
    game.generation, game.game_index, game.model = 1, index, 3
    first = state.returns()[0]
    game.outcome = 1 if first > 0 else 2 if first < 0 else 3
    game.opening = moves[:num_opening]
    plies = []
    for place, move in enumerate(moves[num_opening:]):
        ply = _core.PlyRecord()
        ply.action = move
        ply.root_value = 0.25 if place % 2 else -0.5
        ply.policy_weight = float(place % 2 == 0)
        ply.value_weight = 1.0
        ply.num_simulations = 32
        ply.policy = [(move, 3)] if place % 2 == 0 else []
        plies.append(ply)
    game.plies = plies
    return game


def add_experience(run, task, num_games=3):
    """Adds a sealed segment of one generation, and a journal of the next."""
    writer = run.experience / "selfplay-0"
    for generation in (1, 2):
        (writer / "1").mkdir(parents=True, exist_ok=True)
        meta = {"kind": "games", "game": task, "generation": generation}
        segment = OpenSegment(writer / "1" / f"{generation:06d}.journal", meta)
        for index in range(num_games):
            game = recorded(task, index)
            game.generation = generation
            segment.append(_core.encode_game(game))
        segment.flush()
        segment.close()
        if generation == 1:
            seal(writer, generation)


def add_matches(run, task):
    """Adds the games of a final match and of a gate."""
    played = []
    for index in range(2):
        moves, state = random_moves(task, 50 + index)
        first = 0.5 + 0.5 * state.returns()[0]
        a_first = index == 0
        score = first if a_first else 1.0 - first
        played.append(PlayedGame(index, a_first, tuple(moves), 2, score))
    (run.games / "final-1.jsonl").write_bytes(games_jsonl(played))
    folder = run.games / "gate" / "000004"
    folder.mkdir(parents=True)
    write_games(folder, task, "candidate", "before", played)


def make_environment_run(path, seed):
    """Creates a run of an environment with some turn events and a film."""
    run = RunDirectory.create_or_resume(path)
    config = {"task": "CartPole-v1", "seed": seed}
    run.write_run({"config": config, "roles": ["actor", "learn"]})
    write_environment_events(run, seed)
    (path / "films").mkdir()
    (path / "films" / "episode-0.mp4").write_bytes(bytes(range(256)) * 8)
    (path / "films" / "secret.txt").write_text("no film")
    return run


def write_environment_events(run, seed):
    """Writes turn events of actors and of a learner."""
    writer = EventWriter(run, "train", run.new_incarnation("train"))
    for step in range(1, 5):
        writer.write("turn", role="actor", mean_return=10.0 * step * seed)
        table = {"num_rows": 100 * step, "num_episodes": step}
        writer.write("turn", **{**learned(step, 1.0), "table": table})
    writer.close()
