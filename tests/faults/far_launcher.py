"""A launcher whose acting processes find no run directory on their host."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tengen.launch.at_once import run_at_once
from tengen.launch.process import ProcessLauncher, child_arguments
from tengen.remote import MIRROR_ROLES
from tengen.roles import TOKEN_VARIABLE, connect_to
from tengen.run import run_token

FAR = "TENGEN_TEST_FAR"
"""The folder of the other host."""


class FarLauncher(ProcessLauncher):
    """Processes of this machine, some of them on mirrors."""

    def __init__(self, config, run):
        super().__init__(run, config.task, at_once=True)
        self._config = config

    def command(self, roles, num_threads, index=0):
        if roles[0] not in MIRROR_ROLES:
            return super().command(roles, num_threads, index)
        folder = (
            Path(os.environ.get(FAR, tempfile.gettempdir())) / f"{roles[0]}-{index}"
        )
        words = child_arguments(
            self._run,
            roles,
            num_threads,
            self._task,
            index,
            at_once=True,
            connect=connect_to(self._config.launch),
            folder=str(folder),
        )
        return [sys.executable, *words]


def run_far(config, run, budget, journal, stop, *, num_threads):
    """Trains by them; see ``run_at_once``."""
    os.environ[TOKEN_VARIABLE] = run_token(run)
    launcher = FarLauncher(config, run)
    run_at_once(launcher, config, run, budget, journal, stop, num_threads=num_threads)
