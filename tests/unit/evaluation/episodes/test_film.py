"""Films: the steps that they show, their formats, and the files that they leave."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tengen import envs, games
from tengen.distribution import pip_install_extra
from tengen.envs import Picture
from tengen.errors import RunError, UsageError
from tengen.evaluation import Films
from tengen.evaluation.episodes.film_formats import Gif, Mp4, choose_format, find_ffmpeg
from tests.refusals import refused

TASK = "tests.environments:Shown"  # nine steps per episode, 60 steps per second


class Listed:
    """A format that records pictures, as JSON with one number per picture."""

    suffix = ".json"
    why = "numbers"

    def __init__(self, most: int = 100) -> None:
        self.most = most
        self.begun: list[ListedFilm] = []

    def max_pictures(self, picture: Picture) -> int:
        return self.most

    def begin(self, picture: Picture, pictures_per_s: float) -> ListedFilm:
        self.begun.append(ListedFilm(pictures_per_s))
        return self.begun[-1]


class ListedFilm:
    def __init__(self, pictures_per_s: float) -> None:
        self.pictures_per_s = pictures_per_s
        self.shown: list[int] = []
        self.is_dropped = False

    def add(self, picture: Picture) -> None:
        self.shown.append(int(picture[:, :, 0].nonzero()[0][0]))

    def finish(self) -> bytes:
        return json.dumps(self.shown).encode()

    def discard(self) -> None:
        self.is_dropped = True


def film(folder: Path, listed: Any, num_steps: int, max_steps: int = 1000) -> Films:
    """Returns films of two of three copies after steps that do not move the paddle."""
    pytest.importorskip("gymnasium")
    games.allow(TASK)
    films = Films(folder, 2, max_steps, listed)
    env = films.filming(envs.make_filmed(TASK, 3, 0, 2))
    env.reset()
    for _ in range(num_steps):
        env.step(np.ones(3, np.int64))
    env.close()
    return films


def test_a_film_is_of_the_first_episode(tmp_path: Path) -> None:
    """At 60 steps per second every other step is shown, and the last one."""
    listed = Listed()
    films = film(tmp_path / "a" / "b", listed, 25)
    assert [one.pictures_per_s for one in listed.begun] == [30.0, 30.0]
    files = films.publish()
    assert [one.path.name for one in files] == ["episode-0.json", "episode-1.json"]
    for i, one in enumerate(files):
        # The ball begins in row 0 and moves down one row in each of nine steps.
        assert json.loads(one.path.read_bytes()) == [0, 2, 4, 6, 8, 9]
        assert one.to_json() == {
            "path": str(one.path),
            "episode": i,
            "steps": 9,
            "pictures": 6,
        }
    assert sorted(one.name for one in (tmp_path / "a" / "b").iterdir()) == [
        "episode-0.json",
        "episode-1.json",
    ]
    films.close()


def test_an_episode_that_is_cut_and_a_film_that_is_full(tmp_path: Path) -> None:
    (cut, _) = film(tmp_path, Listed(), 8, max_steps=5).publish()
    assert json.loads(cut.path.read_bytes()) == [0, 2, 4, 5]
    (full, _) = film(tmp_path, Listed(3), 25).publish()
    assert json.loads(full.path.read_bytes()) == [0, 2, 4]
    assert (full.num_steps, full.num_pictures) == (4, 3)


def test_what_is_not_published_is_dropped(tmp_path: Path) -> None:
    listed = Listed()
    films = film(tmp_path, listed, 3)
    films.close()
    assert [one.is_dropped for one in listed.begun] == [True, True]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with refused(UsageError, f"video ({path})"):
            Films(path, 1, 10, Listed())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_of_another_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with refused(UsageError, f"video ({tmp_path})"):
        Films(tmp_path, 1, 10, Listed())
    tmp_path.chmod(0o700)


def pictures(num_pictures: int, height: int = 33, width: int = 47) -> list[Picture]:
    """Returns pictures with a white bar that moves down."""
    found = []
    for i in range(num_pictures):
        picture = np.full((height, width, 3), (200, 30, 30), np.uint8)
        picture[2 * i : 2 * i + 4] = 255
        found.append(picture)
    return found


def test_a_gif_has_the_pictures() -> None:
    image = pytest.importorskip("PIL.Image")
    shown = pictures(10)
    gif = Gif()
    made = gif.begin(shown[0], 15.0)
    for picture in shown:
        made.add(picture)
    read = image.open(io.BytesIO(made.finish()))
    assert (read.format, read.n_frames, read.size) == ("GIF", 10, (47, 33))
    for i, picture in enumerate(shown):
        read.seek(i)
        assert read.info["duration"] == 70
        np.testing.assert_allclose(np.asarray(read.convert("RGB")), picture, atol=8)
    assert gif.max_pictures(np.zeros((210, 160, 3), np.uint8)) > 5000
    assert gif.max_pictures(np.zeros((2000, 2000, 3), np.uint8)) == 50


def test_an_mp4_has_the_pictures() -> None:
    program = find_ffmpeg()
    if program is None:
        pytest.skip("needs ffmpeg, or pip install imageio-ffmpeg")
    shown = pictures(10)
    made = Mp4(program).begin(shown[0], 15.0)
    for picture in shown:
        made.add(picture)
    # A picture may have another size, and is then padded with black.
    made.add(shown[0][:20])
    data = made.finish()
    assert data[4:8] == b"ftyp"
    assert b"avc1" in data


FAKE = """#!{python}
import sys
data = sys.stdin.buffer.read()
size = sys.argv[sys.argv.index("-s") + 1]
open(sys.argv[-1], "wb").write(f"{{size}} {{len(data)}}".encode())
"""
BROKEN = """#!{python}
import sys
print("Unknown encoder 'libx264'", file=sys.stderr)
sys.exit(1)
"""


def fake_ffmpeg(folder: Path, text: str) -> str:
    path = folder / "ffmpeg"
    path.write_text(text.format(python=sys.executable))
    path.chmod(0o755)
    return str(path)


def test_which_format_is_chosen(tmp_path: Path, monkeypatch: Any) -> None:
    """If no ffmpeg works, a GIF is written, with the reason."""
    pytest.importorskip("PIL")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert isinstance(choose_format(), Gif)
    assert choose_format().why.endswith(pip_install_extra("video"))
    fake_ffmpeg(tmp_path, BROKEN)
    assert isinstance(choose_format(), Gif)
    program = fake_ffmpeg(tmp_path, FAKE)
    chosen = choose_format()
    assert isinstance(chosen, Mp4)
    assert chosen.why == f"mp4, with {program}"
    shown = pictures(3)
    made = chosen.begin(shown[0], 15.0)
    for picture in shown:
        made.add(picture)
    assert made.finish() == f"47x33 {3 * 33 * 47 * 3}".encode()
    made.discard()
    (tmp_path / "ffmpeg").unlink()
    monkeypatch.setitem(sys.modules, "PIL", None)
    with refused(UsageError, "video (no encoder)"):
        choose_format()
    assert list(temporary.iterdir()) == []


def test_an_encoder_that_fails_is_one_line(tmp_path: Path) -> None:
    made = Mp4(fake_ffmpeg(tmp_path, BROKEN)).begin(pictures(1)[0], 15.0)
    with pytest.raises(RunError) as failed:
        made.finish()
    assert "with exit code 1: Unknown encoder 'libx264'; " in str(failed.value)
