"""A game that the disk loses before its generation is sealed is replayed."""

import os

import numpy as np
import pytest

from tengen.errors import RunError
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, write_config
from tengen.run import RunDirectory

SETTINGS = (
    "agent.actor.games_per_generation=12",
    "agent.actor.full_simulations=4",
    "agent.actor.num_slots=4",
    "inference.backend=torch",
    "inference.precision=fp32",
    "inference.batch_shape=dynamic",
)


def flip_a_bit_in(journal):
    with open(journal, "rb+") as file:
        middle = os.path.getsize(journal) // 2
        (byte,) = os.pread(file.fileno(), 1, middle)
        os.pwrite(file.fileno(), bytes([byte ^ 1]), middle)


def test_a_generation_is_sealed_whole_or_not_at_all(tmp_path):
    config = override(make_config("tictactoe", "alphazero", None), SETTINGS)
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, config)
    for name in ("learn", "export", "gate"):
        role = make_role(name, config, run, RoleContext())
        role.turn()
        role.close()

    role = make_role("selfplay", config, run, RoleContext())
    play = role._threads.play

    def play_on_a_bad_disk(wanted, opened, *args, **kwargs):
        played = play(wanted, opened, *args, **kwargs)
        opened.flush()
        (journal,) = run.experience.glob("*/*/000001.journal")
        flip_a_bit_in(journal)
        return played

    role._threads.play = play_on_a_bad_disk
    message = r"generation \(1\) must have 12 games on the disk, not 11; "
    with pytest.raises(RunError, match=message):
        role.turn()
    role.close()
    assert not list(run.experience.glob("*/*/[0-9]*.npz"))

    role = make_role("selfplay", config, run, RoleContext())
    report = role.turn()
    role.close()
    assert report["num_games"] == 12
    (gap,) = report["journal_gaps"]
    assert "000001.journal) is damaged at byte" in gap
    (sealed,) = run.experience.glob("*/*/[0-9]*.npz")
    with np.load(sealed) as columns:
        assert columns["game_index"].tolist() == list(range(12))
