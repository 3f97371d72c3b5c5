"""Batched evaluation: ports ask, a driver loops, backends compute.

``choose`` measures once what a run uses, ``open_backend`` compiles a model with it,
``drive`` evaluates what a port asks for. Importing this imports neither torch nor
OpenVINO.
"""

from __future__ import annotations

from tengen.inference.backend import Backend, DriveStats, Port, Runner, drive
from tengen.inference.choice import Choice, check_machine, choose, open_backend
from tengen.inference.config import InferenceConfig
from tengen.inference.determinism import ProbeResult, probe

__all__ = [
    "Backend",
    "Choice",
    "DriveStats",
    "InferenceConfig",
    "Port",
    "ProbeResult",
    "Runner",
    "check_machine",
    "choose",
    "drive",
    "open_backend",
    "probe",
]
