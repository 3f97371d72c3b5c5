import argparse
import subprocess
import sys

import pytest

from tengen.cli.bench.inference import add_arguments, run
from tengen.errors import UsageError
from tengen.models import can_quantise
from tests.refusals import refused


def parsed(*options):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(options)


def test_the_table_has_a_row_for_every_combination():
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


@pytest.mark.skipif(not can_quantise(), reason="this CPU has no int8")
def test_int8_is_in_the_table():
    options = "--nets 2x8 --board 3 --batches 2 --threads 1 --seconds 0.2"
    report = run(parsed(*options.split(), "--backends", "openvino"))
    speeds = {row["precision"]: row["evaluations_per_s"] for row in report["rows"]}
    assert speeds["int8"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--threads", "two"), "threads (two)"),
        (("--batches", "0"), "batches (0)"),
        (("--backends", "torhc"), 'did you mean "torch"'),
        (("--nets", "6y96"), "net (6y96)"),
        (("--nets", "2x8,6x97"), "num_channels (97)"),
        (("--nets", ""), "nets ()"),
        (("--nets", "2x8,,"), "nets (2x8,,)"),
        (("--nets", "999999x8"), "num_blocks (999999)"),
        (("--batches", ""), "batches ()"),
        (("--batches", "8,-1"), "batches (8,-1)"),
        (("--batches", "5000"), "batches (5000) must be numbers from 1 to 4096"),
        (("--batches", "9" * 5000), "must be numbers from 1 to 4096"),
        (("--threads", ""), "threads ()"),
        (("--threads", "0"), "threads (0)"),
        (("--threads", "1000"), "threads (1000)"),
        (("--backends", ""), "backends ()"),
        (("--board", "0"), "board (0) must be 1 to 64"),
        (("--board", "1000000"), "board (1000000)"),
        (("--seconds", "0"), "seconds (0.0) must be above 0"),
        (("--seconds", "nan"), "seconds (nan)"),
        (("--seconds", "inf"), "seconds (inf)"),
    ],
)
def test_bad_options_are_refused(options, message):
    with refused(UsageError, message) as error:
        run(parsed(*options))
    assert "; " in str(error.value)
    assert "\n" not in str(error.value)


def test_importing_inference_and_models_loads_no_framework():
    code = (
        "import sys, tengen.inference, tengen.models, tengen.cli.bench.inference;"
        "sys.exit(bool({'torch', 'openvino'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
