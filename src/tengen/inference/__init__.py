"""Batched inference: evaluates networks on the rows of many callers.

``choose`` measures once which settings are best for a run. ``open_backend`` compiles a
model with these settings, and ``drive`` evaluates a port's batches. Importing this
package imports neither torch nor OpenVINO.
"""

from __future__ import annotations

from tengen.inference.backend import (
    Arrays,
    Backend,
    DriveStats,
    LaneBackend,
    Port,
    RowLayout,
    Runner,
    allocate,
    bind_port,
    drive,
    search_outputs,
)
from tengen.inference.choice import (
    Choice,
    check_machine,
    choose,
    devices_of,
    needs_graph,
    open_backend,
)
from tengen.inference.config import (
    InferenceConfig,
    check_device_words,
    check_num_gpus,
    default_devices,
    has_bfloat16,
    has_driver,
    parse_devices,
)
from tengen.inference.determinism import probe
from tengen.inference.row_arrays import RowArrays

__all__ = [
    "Arrays",
    "Backend",
    "Choice",
    "DriveStats",
    "InferenceConfig",
    "LaneBackend",
    "Port",
    "RowArrays",
    "RowLayout",
    "Runner",
    "allocate",
    "bind_port",
    "check_device_words",
    "check_machine",
    "check_num_gpus",
    "choose",
    "default_devices",
    "devices_of",
    "drive",
    "has_bfloat16",
    "has_driver",
    "needs_graph",
    "open_backend",
    "parse_devices",
    "probe",
    "search_outputs",
]
