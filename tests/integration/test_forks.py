"""Self-play games that fork from games of the previous generation."""

import pytest

from tengen.experience import ExperienceWriter
from tengen.roles.selfplay.earlier_games import fork_sources
from tests.integration.runs import SMALL, run_command, sealed, train_command
from tests.unit.experience.store_games import random_game, write_generation

FORKS = (*SMALL, "agent.actor.early_fork_share=0.3", "agent.actor.late_fork_share=0.4")


def test_sources_are_the_games_of_the_newest_generation_before(tmp_path):
    for generation, writer in ((1, "selfplay-0"), (2, "selfplay-1"), (4, "selfplay-0")):
        write_generation(tmp_path, generation, 9, name="go/4", writer=writer)
    assert fork_sources(tmp_path, 1) == []
    for wanted, generation in ((2, 1), (3, 2), (4, 2), (5, 4)):
        records = [random_game("go/4", i, generation) for i in range(9)]
        expected = [
            (r.variant, [*r.opening, *(ply.action for ply in r.plies)]) for r in records
        ]
        assert fork_sources(tmp_path, wanted) == expected


def test_a_variant_is_that_of_its_source(tmp_path):
    records = [random_game("go/4", i, 1, variant="go/3/komi=0.5") for i in range(3)]
    writer = ExperienceWriter(tmp_path / "selfplay-0", 1)
    segment = writer.open_games(1, "go/4")
    for record in records:
        segment.sink.put(record)
    segment.close()
    writer.seal(1)
    assert {variant for variant, _ in fork_sources(tmp_path, 2)} == {"go/3/komi=0.5"}


@pytest.mark.soak
def test_a_run_with_forks_in_two_calls_is_the_run_in_one(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for out, calls in ((one, (48,)), (two, (24, 24))):
        for games in calls:
            done = run_command(train_command(out, games, settings=FORKS))
            assert done.returncode == 0, done.stderr
    assert len(sealed(one)) == 2
    assert sealed(one) == sealed(two)
    sources = [moves for _, moves in fork_sources(one / "experience", 2)]
    plain = [moves for _, moves in fork_sources(one / "experience", 3)]
    shared = [
        any(moves[:3] == source[:3] for source in sources if len(source) > 3)
        for moves in plain
    ]
    # Two of three games fork; other games rarely share three moves with a source.
    assert sum(shared) > 24 / 4
