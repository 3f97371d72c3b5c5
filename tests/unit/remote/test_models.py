"""Models come to a mirror whole, whatever happens on the way."""

from __future__ import annotations

import os
import threading
import time

import pytest

from tengen.errors import RunError
from tengen.remote.messages import decoded, encoded
from tengen.run import find_files
from tests.integration.runs import wait_for
from tests.unit.remote.playing import fails, games_at, kill, play

LARGE = 3 << 19


def publish(run, number, size=LARGE):
    """Publishes a model of two files; returns what is in them."""
    content = {"meta.json": b"{}", "model.onnx": os.urandom(size)}

    def write(folder):
        for name, data in content.items():
            (folder / name).write_bytes(data)

    run.models.publish(number, write)
    return content


def content_of(run, number):
    return {path.name: path.read_bytes() for path in run.models.entry(number).iterdir()}


def wait_for_model(mirror, number):
    wait_for(lambda: mirror.run.models.latest() == number)


class Pieces:
    """The host's answers to questions for pieces, each of which may be changed."""

    def __init__(self, host, change):
        self.asked = []
        self._change = change
        self._questions = host.service.service.questions
        self._answer = self._questions["piece"]
        self._questions["piece"] = self

    def __call__(self, message):
        self.asked.append((message["number"], message["name"], message["offset"]))
        return self._change(len(self.asked), self._answer(message))

    @property
    def offsets(self):
        return [offset for _, name, offset in self.asked if name == "model.onnx"]


def test_a_large_model_is_the_same_here(host, mirror_at, tmp_path):
    first = publish(host.run, 4)
    mirror = mirror_at(tmp_path / "far")
    assert content_of(mirror.run, 4) == first
    second = publish(host.run, 5)
    wait_for_model(mirror, 5)
    assert content_of(mirror.run, 5) == second
    wait_for(lambda: not (mirror.run.path / "fetching").exists())


def test_a_fetch_that_breaks_goes_on_where_it_was(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")

    def cut(number, answer):
        if number == 3:
            raise RunError("the connection broke")
        return answer

    pieces = Pieces(host, cut)
    content = publish(host.run, 4)
    wait_for_model(mirror, 4)
    assert content_of(mirror.run, 4) == content
    assert pieces.offsets == [0, LARGE // 3, LARGE // 3, 2 * LARGE // 3]


def test_a_damaged_byte_is_found(host, mirror_at, tmp_path):
    said = []
    mirror = mirror_at(tmp_path / "far", say=said.append)
    is_damaged = threading.Event()
    is_damaged.set()

    def damage(number, answer):
        data = bytearray(decoded(answer))
        data[-1] ^= is_damaged.is_set()
        return {"data": encoded(data)}

    Pieces(host, damage)
    content = publish(host.run, 4)
    wait_for(lambda: said)
    assert "arrived damaged" in said[0]
    assert mirror.run.models.numbers() == [3]
    is_damaged.clear()
    wait_for_model(mirror, 4)
    assert content_of(mirror.run, 4) == content


def test_a_model_that_is_retired_meanwhile_is_passed_over(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    newer = {}

    def retire(number, answer):
        if number == 2:
            newer.update(publish(host.run, 5))
            host.run.models.remove(4)
        return answer

    pieces = Pieces(host, retire)
    publish(host.run, 4)
    wait_for_model(mirror, 5)
    assert mirror.run.models.numbers() == [3, 5]
    assert content_of(mirror.run, 5) == newer
    assert {number for number, _, _ in pieces.asked} == {4, 5}


def test_games_go_while_a_model_comes(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    has_begun = threading.Event()
    seen = []

    def slow(number, answer):
        has_begun.set()
        time.sleep(0.15)
        seen.append(bool(games_at(host.run)))
        return answer

    Pieces(host, slow)
    publish(host.run, 4, 8 * LARGE)
    has_begun.wait()
    play(mirror, 3)
    wait_for_model(mirror, 4)
    assert seen[-1]


def test_an_end_does_not_wait_for_a_model(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    pieces = Pieces(host, lambda number, answer: time.sleep(0.1) or answer)
    publish(host.run, 4, 50 * LARGE)
    wait_for(lambda: pieces.asked)
    generation = play(mirror, 3)
    mirror.close()
    assert games_at(host.run) == [(generation, 3)]
    assert mirror.run.models.numbers() == [3]


@pytest.mark.parametrize("what", ["model", "piece", "look"])
def test_who_fetches_is_heard(host, mirror_at, tmp_path, what):
    mirror = mirror_at(tmp_path / "far")
    (member,) = host.service._members._members.values()
    kill(mirror)
    member.heard_s = 0.0
    mirror._client.ask(what, number=3, name="meta.json", offset=0)
    assert member.heard_s > 0


def test_models_that_the_run_has_not_are_dropped(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    mirror.close()
    publish(mirror.run, 9)  # as a learner would that took the mirror for a run
    (mirror.run.models.entry(3) / "meta.json").write_text("another network")
    mirror = mirror_at(tmp_path / "far")
    assert mirror.run.models.numbers() == [3]
    assert content_of(mirror.run, 3) == content_of(host.run, 3)


def test_games_by_a_model_that_the_run_has_not_are_refused(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    host.run.models.remove(3)
    publish(host.run, 2)
    play(mirror, 3)
    fails(mirror, "has games by model 3, which the run has not published")
    assert find_files(host.run.experience, "*/*/*.npz") == []
