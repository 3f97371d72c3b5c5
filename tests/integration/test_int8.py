"""Runs in int8 produce the same bytes with any threads and kills."""

import json
import sys

import pytest

from tengen.evaluation.players import open_for_play
from tengen.inference.openvino_backend import float_precision
from tengen.models import INT8_FILE, can_quantise, load_model
from tests.integration.runs import SMALL, events, run_command, sealed, train_command

GAMES = 48
INT8 = (*SMALL, "inference.precision=int8")

pytestmark = pytest.mark.precision
needs_int8 = pytest.mark.skipif(not can_quantise(), reason="this CPU has no int8")


def models(out):
    """Returns the verified SHA-256 hashes of all published models, by number."""
    paths = sorted((out / "models").iterdir())
    return {path.name: load_model(path).meta.sha256 for path in paths}


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    out = tmp_path_factory.mktemp("reference") / "run"
    command = train_command(out, GAMES, "--threads", "1", settings=INT8)
    done = run_command(command)
    assert done.returncode == 0, done.stderr
    assert [INT8_FILE in sha256 for sha256 in models(out).values()] == [
        False,
        True,
        True,
    ]
    assert all("warning" not in turn for turn in events(out, "turn"))
    return out


@needs_int8
def test_threads_change_no_byte(reference, tmp_path):
    out = tmp_path / "run"
    threads = ("--threads", "2")
    done = run_command(train_command(out, GAMES, *threads, settings=INT8, cores=2))
    assert done.returncode == 0, done.stderr
    assert models(out) == models(reference)
    assert sealed(out) == sealed(reference)


@needs_int8
@pytest.mark.soak
def test_int8_plays_other_games_than_floats(reference, tmp_path):
    """Only then do the other tests check int8; the initial model plays in floats."""
    out = tmp_path / "run"
    settings = (*INT8, f"inference.precision={float_precision()}")
    done = run_command(train_command(out, GAMES, settings=settings))
    assert done.returncode == 0, done.stderr
    assert sealed(out)[1] == sealed(reference)[1]
    assert sealed(out)[2] != sealed(reference)[2]


@needs_int8
@pytest.mark.soak
@pytest.mark.parametrize(
    "fault",
    ["publish.synced:1:candidates/000001", "seal.gathered:1:/000002"],
)
def test_kills_change_no_byte(reference, tmp_path, fault):
    """Kills before the first int8 model is published, or after its last game."""
    out = tmp_path / "run"
    done = run_command(train_command(out, GAMES, settings=INT8), fault=fault)
    assert done.returncode == 1
    assert "died 5 times in a row" in done.stderr
    # A generation that only needs to be sealed costs the second call no games.
    missing = GAMES - 24 * len(sealed(out))
    done = run_command(train_command(out, missing, settings=INT8))
    assert done.returncode == 0, done.stderr
    assert models(out).items() >= models(reference).items()
    assert sealed(out).items() >= sealed(reference).items()


@needs_int8
def test_an_int8_model_plays_a_match_by_its_float_graph(reference):
    """A machine that plays against the model might not support int8."""
    model = max((reference / "models").iterdir())
    assert (model / INT8_FILE).exists()
    assert open_for_play(model, 1).precision == "fp32"
    command = [sys.executable, "-m", "tengen", "match", str(model), "random"]
    done = run_command([*command, "--games", "4", "--simulations", "4", "--json"])
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["games"] == 4


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (
            "supported_precisions = lambda: ('fp32', 'bf16')",
            "inference.precision (int8) is not supported natively by this CPU; set "
            "inference.precision=fp32",
        ),
        (
            "is_installed = lambda: False",
            "precision (int8) must be fp32 or bf16 with torch; install openvino or "
            "set one of them",
        ),
    ],
)
def test_int8_where_there_is_none_is_refused_before_anything_is_written(
    tmp_path, missing, message
):
    pytest.importorskip("openvino")
    out = tmp_path / "run"
    settings = (*INT8, "inference.backend=auto")
    command = train_command(out, 24, settings=settings)
    at = command.index("-m")
    command[at : at + 2] = [
        "-c",
        "import sys\n"
        "from tengen.inference import choice, openvino_backend\n"
        f"choice.{missing}\n"
        f"openvino_backend.{missing}\n"
        "from tengen.cli import main\n"
        "sys.exit(main(sys.argv[1:]))",
    ]
    done = run_command(command)
    assert done.returncode == 2
    assert done.stderr == f"tengen: {message}\n"
    assert not out.exists()
