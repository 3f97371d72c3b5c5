"""A GPU that a config names and a rank has not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tengen.errors import UsageError
from tengen.inference import config as inference_config
from tengen.launch import mpi
from tengen.launch.ranks.table import RankInfo
from tengen.overrides import override
from tengen.recipes import make_config
from tests.refusals import refused
from tests.unit.launch.ranks.fake_ranks import info

ON_GPU = ("inference.devices=cuda:0", "learner.device=cuda:0")


@pytest.fixture
def fit(monkeypatch: pytest.MonkeyPatch):
    """Fits tictactoe to ranks, on a machine where torch sees so many GPUs."""

    def fitted(ranks: list[RankInfo], *settings: str, num_gpus: int = 1) -> None:
        monkeypatch.setattr(inference_config, "_num_gpus", lambda: num_gpus)
        monkeypatch.setattr(mpi, "_met", (SimpleNamespace(ranks=ranks), None))
        made = override(make_config("tictactoe", None, None), list(settings))
        mpi.MpiLauncher.fit(made, keeps_count=False)

    return fitted


def test_the_first_rank_asks_torch(fit) -> None:
    ranks = [info(0), info(1, "b")]
    with refused(UsageError, "learner.device (cuda:0)"):
        fit(ranks, *ON_GPU, num_gpus=0)
    with refused(UsageError, "inference.devices (cuda:1)"):
        fit(ranks, "inference.devices=cuda:0,cuda:1")
    fit(ranks, num_gpus=0)
    # A machine may show its GPUs to torch alone.
    fit(ranks, *ON_GPU)


def test_other_ranks_say_what_they_see(fit) -> None:
    first = info(0, devices=["0"])
    fit([first, info(1, "b", devices=["0"])], *ON_GPU)
    with refused(UsageError, "inference.devices (cuda:0)"):
        fit([first, info(1, "b", devices=["0"]), info(2, "c")], *ON_GPU)
    # A learner that has a GPU of its host by number leaves none for who plays there.
    asked = "launch.roles.learn.num_gpus=1"
    ranks = [info(0, "a", devices=["0", "1"]), info(1, "a", devices=["0", "1"])]
    fit(ranks, *ON_GPU, asked, num_gpus=2)
    both = "inference.devices=cuda:0,cuda:1"
    with refused(UsageError, "for selfplay"):
        fit(ranks, both, asked, num_gpus=2)
