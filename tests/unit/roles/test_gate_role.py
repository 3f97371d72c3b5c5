"""The gate's matches."""

from __future__ import annotations

import dataclasses

from tengen.evaluation.match import MAX_SEED
from tengen.recipes import make_config
from tengen.roles import gate
from tengen.roles.role import RoleContext
from tengen.run import RunDirectory


def test_a_match_after_the_greatest_seed_has_a_seed(tmp_path, monkeypatch):
    seeds = []
    monkeypatch.setattr(gate, "judge", lambda *_, seed, **__: seeds.append(seed))
    monkeypatch.setattr(gate.GateRole, "_player", lambda *_: None)
    run = RunDirectory.create_or_resume(tmp_path)
    for seed in (7, MAX_SEED):
        config = dataclasses.replace(make_config("tictactoe", None, None), seed=seed)
        role = gate.GateRole(config, run, RoleContext(num_threads=1))
        role._judge(3, 2)
        role.close()
    assert seeds == [10, 2]
