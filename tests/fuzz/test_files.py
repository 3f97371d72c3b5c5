"""Files of every kind that tengen reads, changed: each is read, or refused in one line.

``TENGEN_FUZZ_TIMES`` makes so many times the usual number of cases, from another seed
each time.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.surfaces import SURFACES

ROOT = Path(__file__).parents[2]
TIMES = os.environ.get("TENGEN_FUZZ_TIMES")
SEED = random.randrange(1 << 30) if TIMES else 1


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Returns what was found on each surface; a process of its own reads them all."""
    kept = tmp_path_factory.mktemp("faults")
    command = [sys.executable, "-P", "-m", "tests.fuzz.reading"]
    found = subprocess.run(
        [*command, str(kept), str(SEED), TIMES or "1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    return {line["surface"]: line for line in lines}


@pytest.mark.parametrize("name", [surface.name for surface in SURFACES])
def test_any_file_is_read_or_refused(told: dict[str, Any], name: str) -> None:
    found = told[name]
    assert found["faults"] == [], "\n".join(found["faults"])
    # Else the changes are none, or reach nothing.
    assert found["refused"] > 0
    assert found["read"] > 0
