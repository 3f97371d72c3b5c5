from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from tengen.bench.inference import add_arguments, run
from tengen.errors import UsageError


def parsed(*options: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(options)


def test_the_table_has_a_row_for_every_combination() -> None:
    options = "--nets 2x8 --board 3 --batches 2,4 --threads 1,2 --seconds 0.4"
    report = run(parsed(*options.split(), "--backends", "torch"))
    assert report["name"] == "inference"
    assert report["cores"] >= 1
    rows = report["rows"]
    assert {(r["precision"], r["batch_rows"], r["threads"]) for r in rows} == {
        (p, b, t) for p in ("fp32", "bf16") for b in (2, 4) for t in (1, 2)
    }
    assert all(r["evaluations_per_s"] > 0 for r in rows)
    assert all(r["evaluations_per_cpu_s"] > 0 for r in rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--threads", "two"), r"threads \(two\)"),
        (("--batches", "0"), r"batches \(0\)"),
        (("--backends", "torhc"), 'did you mean "torch"'),
        (("--nets", "6y96"), r"net \(6y96\)"),
    ],
)
def test_bad_options_are_refused(options: tuple[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(parsed(*options))


def test_importing_inference_and_models_loads_no_framework() -> None:
    code = (
        "import sys, tengen.inference, tengen.models, tengen.bench.inference;"
        "sys.exit(bool({'torch', 'openvino'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
