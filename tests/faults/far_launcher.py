"""A launcher whose acting processes cannot access the run directory."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tempfile
from pathlib import Path

from tengen.launch.local import LocalLauncher
from tengen.launch.wire import Hub
from tengen.remote import MIRROR_ROLES
from tengen.roles.doors import connect_to

FAR = "TENGEN_TEST_FAR"
"""The environment variable with the folder that stands for the other host's disk."""


class FarLauncher(LocalLauncher):
    """Starts local processes; those with the roles ``MIRROR_ROLES`` use mirrors."""

    def __init__(self, config, run):
        super().__init__()
        self.connect = connect_to(config.launch)
        self._path = str(run.path.absolute())

    @classmethod
    @contextlib.contextmanager
    def open(cls, call):
        with contextlib.closing(Hub.on_this_host(call.run)) as hub:
            yield cls(call.config, call.run), hub

    def start(self, command, placed):
        role = placed.worker.roles[0]
        if role in MIRROR_ROLES:
            far = Path(os.environ.get(FAR, tempfile.gettempdir()))
            folder = str(far / f"{role}-{placed.worker.index}")
            words = [folder if one == self._path else one for one in command.words]
            words = [one for one in words if not one.startswith("--identity=")]
            command = dataclasses.replace(command, words=words)
        return super().start(command, placed)
