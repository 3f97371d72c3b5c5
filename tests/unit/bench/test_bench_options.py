"""Options of ``tengen bench`` that are refused before anything is measured."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tengen import cli, learners
from tengen.cli.bench import selfplay, store
from tengen.cli.bench.store_workloads import WORKLOADS
from tengen.run import available_cores

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("search --simulations 0", "simulations (0) must be 1 to 16777216; "),
        ("search --simulations -5", "simulations (-5) must be 1 to"),
        ("search --simulations 99999999999", "simulations (99999999999) must be 1 to"),
        ("search --simulations x", "argument --simulations: invalid int value: 'x'"),
        ("search --game chess", "must be tictactoe, connect4, gomoku/5"),
        ("search --policy best", "argument --policy: invalid choice: 'best'"),
        ("search --threads 2 --policy gumbel", "policy (gumbel) must be puct"),
        ("search --net big", "net (big) must be"),
        ("selfplay --cores 0", f"cores (0) must be 1 to {available_cores()}; leave"),
        ("selfplay --cores -1", f"cores (-1) must be 1 to {available_cores()}; leave"),
        ("selfplay --cores 99999", "cores (99999) must be 1 to"),
        ("selfplay --simulations 0", ": simulations (0) must be 1 to 16777216; "),
        ("selfplay --slots 0", ": slots (0) must be 1 to 4096; "),
        ("selfplay --slots 99999", ": slots (99999) must be 1 to 4096; "),
        ("selfplay --rounds 0", ": rounds (0) must be 1 to 10000; "),
        ("selfplay --rounds -3", ": rounds (-3) must be 1 to 10000; "),
        ("selfplay --round-s 0", ": round-s (0.0) must be 0.1 to 86400"),
        ("selfplay --round-s -1", ": round-s (-1.0) must be 0.1 to 86400"),
        ("selfplay --round-s nan", ": round-s (nan) must be 0.1 to 86400"),
        ("selfplay --round-s inf", ": round-s (inf) must be 0.1 to 86400"),
        ("selfplay --device-rows -1", "device_rows (-1) must be 0 to 65536; "),
        ("learner --batch 0", ": batch (0) must be 1 to 65536"),
        ("learner --batch 8 --shards 9", ": shards (9) must be 1 to 8"),
        ("learner --device auto", ": device (auto) must be a device, "),
        ("learner --device gpu", ": device (gpu) must be cpu or GPUs; "),
        ("learner --net minigo:2x8 --auxiliary", "(minigo:2x8) has no auxiliary"),
        ("inference --seconds nan", ": seconds (nan) must be above 0 and at most"),
        ("inference --seconds inf", ": seconds (inf) must be above 0 and at most"),
        ("inference --seconds -1", ": seconds (-1.0) must be above 0 and at most"),
        ("inference --threads 0", ": threads (0) must be numbers from 1 to"),
        ("inference --batches 0", ": batches (0) must be numbers from 1 to"),
        ("search --threads 0", ": threads (0) must be 1 to"),
        ("selfplay --cache-mib -1", "cache_mib (-1) must be 0 to 1048576; "),
        ("selfplay --cache-mib 9999999999", "cache_mib (9999999999) must be 0 to"),
        ("selfplay --net big", "net (big) must be BLOCKSxCHANNELS; "),
        ("selfplay --net 2x7", "num_channels (7) must be a multiple of 4 from 8 to"),
        ("selfplay --game chess", "must be tictactoe, connect4, gomoku/5"),
        (
            "actors --net big",
            "net.kind (big) is not known; known: impala, katago, lines, minigo, mlp",
        ),
        ("actors --precision int8", "argument --precision: invalid choice: 'int8'"),
        ("actors --actors 0", "actors (0) must be 1 to 64; "),
        ("selfplay --backend tpu", "argument --backend: invalid choice: 'tpu'"),
        (
            "store --paced --workload r2d2 --memory-gb 0.01 --seconds 1",
            "must hold chunks of 10485824 bytes; raise it",
        ),
        ("store --selection --workload chess", "workload (chess) is not known; "),
        ("store --selection --seconds 0", "seconds (0.0) must be 0.1 to 86400; "),
        ("fast", "invalid choice: 'fast'"),
        ("selfplay --nets x", ': option (--nets) is not known; did you mean "--net"?'),
        ("search --nots x", ': option (--nots) is not known; did you mean "--net"?'),
        (
            "search --zzz",
            "known: --game, --help, --json, --net, --policy, --quiet, --simulations, "
            "--threads",
        ),
        (
            "search more",
            ": argument (more) is unexpected; see tengen bench search -h",
        ),
    ],
)
def test_refused_with_one_line(capsys, words, message):
    assert cli.main(["bench", *words.split()]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_game_in_python_is_measured_as_one_process_plays_it(capsys, monkeypatch):
    """Threads of one interpreter wait for each other, which training's do not."""
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setattr(selfplay, "available_cores", lambda: 2)
    cores = os.sched_getaffinity(0)
    words = ["bench", "selfplay", "--net", "2x8", "--game", "own_game:Hex"]
    assert cli.main(words) == 2
    err = capsys.readouterr().err
    assert ": game (own_game:Hex) must be a built-in game for 2 cores, " in err
    assert "; use --cores 1, " in err
    assert err.count("\n") == 1
    work = "--cores 1 --simulations 2 --slots 2 --rounds 1 --round-s 0.1 --json"
    assert cli.main([*words, *work.split()]) == 0
    os.sched_setaffinity(0, cores)  # a bench pins its process
    assert json.loads(capsys.readouterr().out)["evals_per_s"] > 0


def test_inference_measures_however_short_its_turns_are(capsys):
    words = "bench inference --nets 2x8 --board 3 --batches 1 --threads 1"
    words += " --backends torch --seconds 1e-6 --json"
    assert cli.main(words.split()) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert rows
    assert all(row["evaluations_per_s"] > 0 for row in rows)


@pytest.mark.parametrize("place", ["memory", "tcp", "disk"])
def test_samples_and_copies_are_read(place, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(store, "_NUM_TURNS", 1)
    monkeypatch.setattr(store, "_WARM_S", 0.1)
    small = replace(WORKLOADS["sac"], batch_size=16)
    monkeypatch.setitem(WORKLOADS, "sac", small)
    words = "bench store --workload sac --seconds 0.2 --memory-gb 0.05 --json"
    where = ["--cold", str(tmp_path)] if place == "disk" else ["--over", place]
    assert cli.main([*words.split(), *where]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["cold"] == (place == "disk")
    [row] = report["rows"]
    assert 0 < row["read_share"] < 1
    assert row["share_of_copies"] > 0
    assert row["unread_share_of_copies"] > 0
    assert list(tmp_path.iterdir()) == []


WORDS = "bench learner --game go/5/nosuicide/planes=minigo --net minigo:1x8 --json"


@pytest.fixture
def made(monkeypatch):
    """Arguments of every learner that is made."""
    made = []
    real = learners.Learner

    def make(config, *args, **options):
        made.append((config, options["device"]))
        return real(config, *args, **options | {"device": "cpu"})

    monkeypatch.setattr(learners, "Learner", make)
    return made


@pytest.mark.parametrize(("batch", "num_shards"), [(1, 1), (16, 2)])
def test_a_batch_has_two_parts_unless_it_is_too_small(made, capsys, batch, num_shards):
    words = f"{WORDS} --games 1 --seconds 0.1 --batch {batch}"
    assert cli.main(words.split()) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["batch"], report["shards"]) == (batch, num_shards)
    assert report["rows_per_s"] > 0
    ((config, device),) = made
    assert (config.batch_size, config.num_shards) == (batch, num_shards)
    assert device == "cpu"


def test_steps_are_made_on_the_device_that_is_named(made, give_gpus, capsys):
    give_gpus(2)
    words = f"{WORDS} --games 1 --seconds 0.1 --batch 16 --shards 1 --device cuda:1"
    assert cli.main(words.split()) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["device"] == "cuda:1"
    ((config, device),) = made
    assert (config.num_shards, config.device, device) == (1, "cuda:1", "cuda:1")
