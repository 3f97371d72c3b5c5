"""Films of episodes from ``tengen eval --video``, in a real browser."""

import sys

import pytest

from tengen import cli
from tengen.evaluation.episodes.film_formats import find_ffmpeg
from tests.unit.serve.made_runs import write_environment_events
from tests.unit.serve.served import serving

pytestmark = pytest.mark.slow


@pytest.fixture
def film(publish_agent, tmp_path, monkeypatch):
    """Returns a function that creates a run of Breakout with a film of an episode."""
    pytest.importorskip("ale_py")
    pytest.importorskip("PIL")

    def make(has_ffmpeg):
        task = "atari/Breakout/classic"
        run = publish_agent(tmp_path / "run", task)
        run.write_run({"config": {"task": task}, "roles": ["actor", "learn"]})
        words = ["--episodes", "1", "--max-steps", "60"]
        words += ["--video", str(run.path / "films")]
        with monkeypatch.context() as patch:
            if not has_ffmpeg:
                patch.setitem(sys.modules, "imageio_ffmpeg", None)
                patch.setenv("PATH", "")
            assert cli.main(["eval", str(run.path), *words]) == 0
        write_environment_events(run, seed=1)
        return run

    return make


def test_a_gif_is_watched_and_closed(page, film):
    with serving([film(has_ffmpeg=False).path]) as live:
        page.open(f"{live.url}/environments")
        # A film is only loaded when a user opens it.
        page.click(".films summary")
        seen = "document.querySelector('.films img')"
        page.wait(f"{seen}?.complete && {seen}.naturalHeight >= 210")
        path = page.run(f"new URL({seen}.src).pathname")
        assert live.ask(path).body.count(b"\x21\xf9\x04") > 10  # frames
        page.click(".films summary")
        page.wait(f"{seen} === null")
        page.leave()


def test_an_mp4_plays_and_is_wound_on(page, film):
    if find_ffmpeg() is None:
        pytest.skip("no ffmpeg is found; pip install 'tengen-rl[video]'")
    with serving([film(has_ffmpeg=True).path]) as live:
        page.open(f"{live.url}/environments")
        seen = "document.querySelector('.films video')"
        page.wait(f"{seen} !== null")
        page.run(f"{seen}.muted = true; void {seen}.play()")
        page.wait(f"{seen}.currentTime > 0.1")
        assert page.run(f"{seen}.videoHeight") >= 210
        page.run(f"{seen}.pause(); {seen}.currentTime = 0.5 * {seen}.duration")
        page.wait(f"!{seen}.seeking && {seen}.readyState >= 2")
        assert page.run(f"{seen}.error") is None
        page.leave()
