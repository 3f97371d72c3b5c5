"""The response of each route, over a real socket."""

import gzip
import json
import os

import pytest

from tests.integration.runs import wait_for
from tests.unit.serve.made_runs import learned, write_events
from tests.unit.serve.served import serving

RUN = "/api/runs/tictactoe"


def test_the_list_tells_of_every_run(site, shelf):
    runs = {run["id"]: run for run in site.ask("/api/runs").json}
    assert set(runs) == {name.replace("/", "~") for name in shelf.runs}
    one = runs["tictactoe"]
    assert one["task"] == "tictactoe"
    assert one["state"] == "not running"
    assert one["latest_model"] == 3
    assert one["rating"] == 105.0
    assert one["headline"] == "charts/rating"
    assert one["curve"]["value"] == [101.0, 102.0, 103.0, 104.0, 105.0]
    assert one["verdict"] == "self-play 80%: all is well"
    assert runs["CartPole-v1~seed2"]["in_environments"]
    assert str(shelf.folder) not in json.dumps(list(runs.values()))


def test_a_run_tells_what_status_does_and_its_curves(site):
    told = site.ask(RUN).json
    assert ["rating", "105 +- 50"] in told["run"]["facts"]
    assert told["run"]["status"]["num_models"] == 2
    curve = told["curves"]["losses/loss"]
    assert curve["step"] == [1, 2, 3, 4, 5]
    assert curve["value"][0] == 2.0
    assert told["config"] == {"task": "tictactoe", "seed": 1}


def test_answers_are_compressed_for_who_takes_it(site):
    plain = site.ask(RUN)
    packed = site.ask(RUN, Accept_Encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < len(plain.body)
    told = json.loads(gzip.decompress(packed.body))
    assert told["curves"] == plain.json["curves"]


def test_a_page_is_sent_what_it_has_not(site, publish_run, tmp_path):
    run = publish_run(tmp_path / "live", "tictactoe", exports=False)
    run.write_run({"config": {"task": "tictactoe"}})
    writer = write_events(run, range(1, 3))
    with serving([run.path]) as live:
        path = "/api/runs/" + live.ask("/api/runs").json[0]["id"]
        tag = live.ask(path).headers["etag"]

        def again():
            return live.ask(path, If_None_Match=tag)

        assert (again().status, again().body) == (304, b"")
        writer.write("turn", **learned(9, 0.25))
        wait_for(lambda: again().status == 200)
        told = again().json
    loss = told["curves"]["losses/loss"]
    assert (loss["step"][-1], loss["value"][-1]) == (9, 0.25)
    writer.close()


def test_a_run_that_trains_tells_of_its_process(site, publish_run, tmp_path):
    run = publish_run(tmp_path / "own", "tictactoe", exports=False)
    run.write_run({"config": {"task": "tictactoe"}})
    with run.lock("train"), serving([run.path]) as own:
        (one,) = own.ask("/api/runs").json
        told = own.ask(f"/api/runs/{one['id']}").json["run"]
    assert one["state"] == told["state"] == "running"
    assert told["status"]["running"].startswith(f"{os.getpid()} on ")
    assert told["memory"][told["status"]["running"]] > 1e6


def test_a_damaged_run_is_told_of_and_hides_no_other(shelf, site, tmp_path):
    folder = tmp_path / "runs"
    for name in ("good", "bad"):
        (folder / name).mkdir(parents=True)
    (folder / "good" / "run.json").write_text('{"schema": 3, "config": {}}')
    (folder / "bad" / "run.json").write_text("{")
    with serving([], folder=folder) as odd:
        bad, good = odd.ask("/api/runs").json
        assert "damaged" in bad["error"]
        assert "error" not in good
        assert odd.ask("/api/runs/bad").status == 409
        assert odd.ask("/api/environments").json == []
        assert [one["id"] for one in odd.ask("/api/stores").json] == ["good"]


def test_environments_are_grouped_by_task(site):
    (task,) = site.ask("/api/environments").json
    assert task["task"] == "CartPole-v1"
    assert [run["seed"] for run in task["runs"]] == [1, 2]
    assert task["runs"][1]["curve"]["value"] == [20.0, 40.0, 60.0, 80.0]
    assert task["runs"][0]["films"] == ["episode-0.mp4"]


def test_films_come_in_parts(site):
    path = "/api/runs/CartPole-v1~seed1/films/episode-0.mp4"
    whole = site.ask(path)
    assert whole.status == 200
    assert whole.headers["content-type"] == "video/mp4"
    part = site.ask(path, Range="bytes=256-259")
    assert part.status == 206
    assert part.body == bytes([0, 1, 2, 3])
    for name in ("secret.txt", "..%2frun.json", "episode-1.mp4"):
        assert site.ask(f"/api/runs/CartPole-v1~seed1/films/{name}").status in (
            404,
            422,
        )


def test_stores_tell_of_experience(site):
    stores = {one["id"]: one for one in site.ask("/api/stores").json}
    assert stores["tictactoe"]["learned"] == {"num_games": 8, "num_rows": 72}
    assert stores["tictactoe"]["experience_bytes"] > 0


def test_every_page_is_the_shell_and_its_files_are_kept(site):
    shell = site.ask("/runs/any~thing/play").body.decode()
    assert shell == site.ask("/").body.decode()
    paths = [part.split('"')[0] for part in shell.split('="') if "/assets/" in part]
    assert len(paths) == 3
    for path in paths:
        reply = site.ask(path, Accept_Encoding="gzip")
        assert reply.status == 200
        assert reply.headers["cache-control"] == "no-cache"
        assert ("content-encoding" in reply.headers) == (len(reply.body) > 500)
        again = site.ask(path, If_None_Match=reply.headers["etag"])
        assert (again.status, again.body) == (304, b"")
    assert site.ask("/favicon.ico").status == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        *((path, 200) for path in ("/", "/store", "/store/", "/players/go~9")),
        *((path, 200) for path in ("/play", "/runs", "/compare?runs=a,b")),
        *((path, 200) for path in ("/runs/a%20b", "/runs/a/games")),
        *((path, 404) for path in ("/nothing", "/store/more")),
        *((path, 404) for path in ("/players/a/play", "/runs/a/games/1")),
    ],
)
def test_an_address_of_no_page_is_not_found_and_says_so(site, path, status):
    reply = site.ask(path)
    assert (reply.status, reply.body) == (status, site.ask("/").body)


def test_the_page_is_light(site):
    paths = ("/", "/assets/app.js", "/assets/style.css", "/assets/icon.svg")
    sizes = [len(site.ask(path, Accept_Encoding="gzip").body) for path in paths]
    assert sum(sizes) < 100_000


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../app.py",
        "/assets/..%2fapp.py",
        "/assets/%2e%2e/app.py",
        "/assets/__init__.py",
        "/api/nothing",
        "/api/runs/tictactoe/nothing",
    ],
)
def test_there_is_no_other_file(site, path):
    reply = site.ask(path)
    assert reply.status == 404
    assert b"import" not in reply.body
