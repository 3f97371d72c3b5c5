"""A window that goes by generations, held to a count of games one by one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from store_games import num_rows, random_game

from tengen import _core
from tengen.errors import RunError, UsageError
from tengen.experience import (
    ExperiencePart,
    ExperienceWriter,
    GenerationsConfig,
    GenerationWindow,
    Manifest,
)
from tengen.experience.rows.imported import ImportedRows, rows_name, write_rows
from tengen.minigo.import_command import Examples
from tests.refusals import refused

B = 8
CONFIG = GenerationsConfig(num_generations=3, min_games=6, share=0.4)
# Of each generation the rows of each game.
Games = dict[int, list[set[int]]]


class Played:
    """Segments of random games whose models are known."""

    def __init__(self, folder):
        self.folder = folder
        self.games: list[tuple[int, list[_core.GameRecord]]] = []
        self._number = 0

    def seal(self, models):
        """Seals one segment; of each game the models that it was played with."""
        self._number += 1
        with ExperienceWriter(self.folder / "selfplay-0", self._number) as writer:
            segment = writer.open_games(self._number, "tictactoe")
            for index, used in enumerate(models):
                record = random_game("tictactoe", index, self._number)
                record.model = used[0]
                record.switches = [(ply, model) for ply, model in enumerate(used[1:])]
                self.games.append((used[-1], [record]))
                segment.sink.put(record)
            segment.close()
            writer.seal(self._number)

    def rows_of_games(self, config, newest):
        """Returns the rows of each game of the generations that a pass may have."""
        found: Games = {}
        row = 0
        for model, (record,) in self.games:
            count = num_rows(record)
            if model <= newest:
                found.setdefault(model, []).append(set(range(row, row + count)))
            row += count
        whole = [m for m, games in found.items() if len(games) >= config.min_games]
        return {m: found[m] for m in sorted(whole)[-config.num_generations :]}


def check_pass(keys, games):
    """Holds the rows of a pass to what they are drawn from."""
    assert len(set(keys)) == len(keys)
    assert set(keys) <= set().union(*(one for of in games.values() for one in of))
    num_left_out = 0
    for of_generation in games.values():
        drawn_from = [one for one in of_generation if one & set(keys)]
        assert len(drawn_from) <= CONFIG.min_games
        num_drawn = len(set(keys) & set().union(*of_generation))
        # The share of games that are among the longest or the shortest.
        sizes = sorted(len(one) for one in of_generation)
        least, most = sum(sizes[: CONFIG.min_games]), sum(sizes[-CONFIG.min_games :])
        assert num_drawn <= round(CONFIG.share * most)
        num_left_out += max(0, round(CONFIG.share * least) - num_drawn)
    assert num_left_out < B


def open_window(played, state=None, seed=7):
    if state is not None:
        state = json.loads(json.dumps(state))
    return GenerationWindow("tictactoe", played.folder, CONFIG, seed, B, state)


def drawn(window):
    batches = []
    while window.available() >= B:
        batches.append(window.sample(B))
        batches[-1].ack()
        if window.available() == 0:
            break
    return batches


def keys_of(batches):
    return [key for batch in batches for key in batch.keys.tolist()]


@pytest.fixture
def played(tmp_path):
    return Played(tmp_path)


def test_a_pass_waits_for_enough_games_of_the_newest_model(played):
    window = open_window(played)
    assert window.available() == 0
    played.seal([[0]] * 5)
    window.refresh()
    assert window.available() == 0
    assert window.lacks(B) == (
        "games of generation 0 (5) must be at least store.min_games (6); play more "
        "games"
    )
    with refused(RunError, "num_samples (8)"):
        window.sample(B)
    played.seal([[0]])
    window.refresh()
    games = played.rows_of_games(CONFIG, 0)
    size = round(0.4 * sum(len(one) for one in games[0]))
    assert window.available() == size // B * B
    assert window.lacks(B) == ""
    keys = keys_of(drawn(window))
    assert len(keys) == size // B * B
    check_pass(keys, games)
    assert (
        window.lacks(B) == "generation (0) was learned already; play with a newer model"
    )


def test_a_pass_that_can_never_fill_a_batch_is_refused(played):
    window = GenerationWindow("tictactoe", played.folder, CONFIG, 7, 1000)
    played.seal([[0]] * 6)
    window.refresh()
    rows = sum(len(one) for one in played.rows_of_games(CONFIG, 0)[0])
    with refused(UsageError, "learner.batch_size (1000)", f"{round(0.4 * rows)} rows"):
        window.lacks(1000)
    # A pass has games of a number that is set: more of them do not help.
    played.seal([[0]] * 60)
    window.refresh()
    assert window.available() == 0
    with refused(UsageError, "learner.batch_size (1000)"):
        window.lacks(1000)


def test_games_belong_to_their_last_model(played):
    window = open_window(played)
    played.seal([[0]] * 6)
    window.refresh()
    drawn(window)
    # Ten games end on model 1; one went on to model 2, which has too few so far.
    played.seal([[0, 1], [1], [1, 2], [1], [0, 1], *[[1]] * 6])
    window.refresh()
    games = played.rows_of_games(CONFIG, 1)
    assert {m: len(of) for m, of in games.items()} == {0: 6, 1: 10}
    check_pass(keys_of(drawn(window)), games)
    assert window.describe()["pass_games"] == 10
    assert window.describe()["pass_generation"] == 1


def test_which_games_a_pass_has_is_drawn_anew(played):
    window = open_window(played)
    seen = set()
    played.seal([[0]] * 30)
    for model in range(3):
        window.refresh()
        keys = set(keys_of(drawn(window)))
        first = played.rows_of_games(CONFIG, model)[0]
        chosen = {place for place, one in enumerate(first) if one & keys}
        assert len(chosen) <= 6
        seen |= chosen
        played.seal([[model + 1]] * 6)
    assert len(seen) > 10
    assert max(seen) > 6


def test_a_generation_of_few_games_counts_for_nothing(played):
    window = open_window(played)
    for models in ([[0]] * 6, [[1]] * 2, [[2]] * 6, [[3]] * 7):
        played.seal(models)
        window.refresh()
        games = played.rows_of_games(CONFIG, models[0][0])
        assert 1 not in games
        if window.available():
            check_pass(keys_of(drawn(window)), games)
    assert set(games) == {0, 2, 3}


def test_the_oldest_generation_leaves(played):
    window = open_window(played)
    for model in range(5):
        played.seal([[model]] * 7)
        window.refresh()
        keys = keys_of(drawn(window))
        games = played.rows_of_games(CONFIG, model)
        assert len(games) == min(3, model + 1)
        check_pass(keys, games)
        for of_generation in games.values():
            assert set(keys) & set().union(*of_generation)
    before = window.describe()["window_bytes"]
    window.close()
    assert window.describe()["window_bytes"] < before


def test_a_restored_window_goes_on_with_the_same_rows(played):
    # Of generations that have too few games others of the window are not forgotten.
    straight, stopped = open_window(played), open_window(played)
    for models in ([[0]] * 7, [[1]] * 7, [[2]], [[3]], [[4]] * 7, [[5]] * 7, [[6]] * 2):
        played.seal(models)
        for window in (straight, stopped):
            window.refresh()
            if models[0] not in ([5], [6]):
                drawn(window)
    num_batches = straight.available() // B
    assert num_batches >= 4
    for step in range(num_batches):
        one, other = straight.sample(B), stopped.sample(B)
        np.testing.assert_array_equal(one.keys, other.keys)
        for name, column in one.columns.items():
            np.testing.assert_array_equal(column, other.columns[name])
        one.ack()
        if step == 1:
            # The batch that was not acknowledged comes again.
            state = stopped.state()
            stopped = open_window(played, state)
            again = stopped.sample(B)
            # Rows are numbered from the oldest that is held.
            np.testing.assert_array_equal(
                again.columns["planes"], one.columns["planes"]
            )
            again.ack()
            break
        other.ack()
    # More games that came meanwhile change nothing of the pass that goes on.
    played.seal([[5]] * 9)
    for window in (straight, stopped):
        window.refresh()
    for _ in range(num_batches - 2):
        one, other = straight.sample(B), stopped.sample(B)
        for name, column in one.columns.items():
            np.testing.assert_array_equal(column, other.columns[name])
        one.ack()
        other.ack()
    assert straight.available() == stopped.available() == 0


def test_the_order_depends_on_the_seed_alone(played):
    played.seal([[0]] * 7)
    found = []
    for seed in (7, 7, 8):
        window = open_window(played, seed=seed)
        window.refresh()
        found.append(keys_of(drawn(window)))
    assert found[0] == found[1] != found[2]


def test_parts_of_a_batch_are_the_batch(played):
    played.seal([[0]] * 7)
    whole, leader = open_window(played), open_window(played)
    part = ExperiencePart(lambda state: open_window(played, state))
    for window in (whole, leader):
        window.refresh()
    part.catch_up(leader.shared(begins=True))
    num_seen = 0
    for model in (0, 1):
        while whole.available():
            wanted = whole.sample(B)
            divided = leader.divide(B, 0, 3)
            order = json.loads(json.dumps(divided.order))
            one, other = divided.draw(), part.draw(order, B, 3, B)
            for name, column in wanted.columns.items():
                joined = np.concatenate([one.columns[name], other.columns[name]])
                np.testing.assert_array_equal(joined, column)
            for batch in (wanted, one, other):
                batch.ack()
            num_seen += 1
        if model == 0:
            played.seal([[1]] * 7)
            for window in (whole, leader):
                window.refresh()
    assert num_seen >= 3
    part.close()


def test_a_part_begins_anew_where_the_leader_went_back(played):
    played.seal([[0]] * 7)
    leader = open_window(played)
    leader.refresh()
    early = leader.shared(begins=True)
    opened = []

    def open_counted(state):
        opened.append(state)
        return open_window(played, state)

    part = ExperiencePart(open_counted)
    part.catch_up(early)
    divided = leader.divide(B, 0, 3)
    part.draw(divided.order, B, 3, B)
    divided.draw().ack()
    part.catch_up(leader.shared(begins=True))
    assert len(opened) == 1
    part.catch_up(early)
    assert len(opened) == 2


def test_a_segment_that_was_set_aside_is_done_without(played):
    played.seal([[0]] * 7)
    played.seal([[0]] * 7)
    window = open_window(played)
    window.refresh()
    window.sample(B).ack()
    state = window.state()
    entry = next(iter(Manifest.from_dict(played.folder, state["manifest"])))
    path = entry.path(played.folder)
    path.rename(path.with_suffix(".damaged"))
    restored = open_window(played, state)
    assert restored.describe()["num_games"] == 7
    assert restored.available() >= 0


def test_a_damaged_state_is_refused(played):
    played.seal([[0]] * 7)
    window = open_window(played)
    window.refresh()
    window.sample(B).ack()
    state = window.state()
    for name in state:
        broken = {key: value for key, value in state.items() if key != name}
        with refused(RunError, "state"):
            open_window(played, broken)


TASK = "go/5/nosuicide/planes=minigo"


def write_imported(folder, generation, num_games):
    """Writes a generation of examples, each row's planes full of its own number."""
    rng = np.random.default_rng(generation)
    games = []
    for _ in range(num_games):
        num = int(rng.integers(1, 6))
        policy = rng.random((num, 26)).astype(np.float32)
        games.append(
            Examples(
                planes=rng.integers(0, 2, (num, 13, 5, 5)).astype(np.uint8),
                policy=policy / policy.sum(1, keepdims=True),
                outcome=rng.choice([-1, 1], num).astype(np.int8),
            )
        )
    folder.mkdir(exist_ok=True)
    write_rows(folder / rows_name(generation), games, 5, generation, "a test")


def test_imported_generations_come_before_the_runs_own(tmp_path):
    for generation in (15, 16, 17):
        write_imported(tmp_path / "imported", generation, 9)
    config = GenerationsConfig(
        num_generations=3, min_games=6, share=0.5, imported=str(tmp_path / "imported")
    )

    def opened(state=None):
        return GenerationWindow(TASK, tmp_path / "experience", config, 7, B, state)

    window = opened()
    # The newest imported generation has games enough, before any was played.
    rows = [ImportedRows(tmp_path / "imported" / rows_name(n)) for n in (15, 16, 17)]
    firsts = np.cumsum([0, *(one.num_rows for one in rows)])
    assert window.available() > 0
    batches = drawn(window)
    keys = keys_of(batches)
    assert len(set(keys)) == len(keys)
    for part, one in enumerate(rows):
        own = [
            key - firsts[part] for key in keys if firsts[part] <= key < firsts[part + 1]
        ]
        assert 0 < len(set(one.games[own])) <= 6
        assert len(own) <= one.num_rows / 2 + 1
    for batch in batches:
        for place, key in enumerate(batch.keys.tolist()):
            part = int(np.searchsorted(firsts, key, side="right")) - 1
            row = np.array([key - firsts[part]])
            outcome = rows[part].columns(row, np.zeros(1, np.uint8))["outcome"]
            np.testing.assert_array_equal(batch.columns["outcome"][place], outcome[0])
    # The run's own generation takes the place of the oldest.
    with ExperienceWriter(tmp_path / "experience" / "selfplay-0", 1) as writer:
        segment = writer.open_games(1, TASK)
        for index in range(6):
            record = random_game(TASK, index, 1)
            record.model = 0
            segment.sink.put(record)
        segment.close()
        writer.seal(1)
    window.refresh()
    state = json.loads(json.dumps(window.state()))
    keys = keys_of(drawn(window))
    assert min(keys) >= firsts[1]
    assert max(keys) >= firsts[-1]
    mixed = drawn(opened(state))
    assert keys_of(mixed) == keys
    assert mixed[0].columns["planes"].shape == (B, 14, 5, 5)


def test_imported_generations_that_cannot_serve_are_refused(tmp_path):
    write_imported(tmp_path / "imported", 3, 2)
    for task, folder, why in (
        ("go/7/nosuicide/planes=minigo", "imported", "go/7"),
        ("go/5", "imported", "go/5/nosuicide"),
        (TASK, "nothing", "store.imported ("),
        (TASK, "imported", "store.min_games (8192)"),
    ):
        config = GenerationsConfig(imported=str(tmp_path / folder))
        with refused(UsageError, why):
            GenerationWindow(task, tmp_path, config, 7, B)
