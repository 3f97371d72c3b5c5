"""Changed files of every kind that tengen reads: each is read, or refused in one line.

``TENGEN_FUZZ_TIMES`` multiplies the usual number of cases, with a new seed in each
run.
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

from tengen.config import from_dict
from tengen.errors import RunError, UsageError
from tengen.learners.checkpoint import read_model, write_checkpoint_json
from tengen.store.configs.store_config import StoreConfig
from tests.fuzz.surfaces import SURFACES, _make_learner
from tests.refusals import refused

ROOT = Path(__file__).parents[2]
TIMES = os.environ.get("TENGEN_FUZZ_TIMES")
SEED = random.randrange(1 << 30) if TIMES else 1


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Returns the findings per surface; a separate process reads all of them."""
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
    # Otherwise the changes have no effect, or never reach a reader.
    assert found["refused"] > 0
    assert found["read"] > 0


def test_what_was_found_is_refused_in_one_line(tmp_path: Path) -> None:
    """These inputs used to cause a traceback or a message of many lines."""
    deep = tmp_path / "store.json"
    deep.write_text("[" * 200_000)
    with refused(UsageError, str(deep)):
        StoreConfig.read(deep)
    for key in ("a\nb", "x" * 5000):
        with pytest.raises(UsageError) as caught:
            from_dict(StoreConfig, {key: 1}, "store")
        text = str(caught.value)
        assert "\n" not in text
        assert len(text) < 300


def test_a_checkpoint_without_a_field_is_damaged(tmp_path: Path) -> None:
    _make_learner(tmp_path)
    path = tmp_path / "checkpoint" / "state.json"
    whole = json.loads(path.read_bytes())
    for name in ("num_samples", "num_steps", "extra", "sha256", "optimizer"):
        rest = {key: whole[key] for key in whole if key not in (name, "json_sha256")}
        write_checkpoint_json(path.parent, rest)
        with refused(RunError, "damaged"):
            read_model(path.parent)
