"""Video formats: mp4 with ffmpeg, or gif with Pillow as the fallback.

The mp4 encoder works while frames arrive. The gif encoder keeps all frames in memory.
"""

from __future__ import annotations

import importlib.util
import io
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from tengen.distribution import pip_install_extra
from tengen.envs import Picture
from tengen.errors import RunError, UsageError

MAX_PICTURES_PER_S = 50.0
"""The maximum frame rate of videos: a frame of a gif lasts at least 0.02 s."""
_MAX_PICTURES = 30_000
# Maximum number of pixels in all frames of a gif, which takes one byte of memory each.
_MAX_GIF_PIXELS = 200_000_000
_END_S = 300.0


class Film(Protocol):
    """The encoder of one video. Not thread-safe."""

    def add(self, picture: Picture) -> None:
        """Adds the frame ``picture``, which should have the video's size.

        Raises:
            RunError: The encoder has failed.
        """

    def finish(self) -> bytes:
        """Returns the contents of the video file. Blocks until the video is encoded.

        Raises:
            RunError: The encoder has failed.
        """

    def discard(self) -> None:
        """Discards the video; has no effect after ``finish``."""


class FilmFormat(Protocol):
    """A video format and its encoder."""

    @property
    def suffix(self) -> str:
        """The suffix of the video's file name, such as ``.mp4``."""

    @property
    def why(self) -> str:
        """Human-readable description of the format and its encoder."""

    def max_pictures(self, picture: Picture) -> int:
        """Returns the maximum number of frames in a video of this frame size."""

    def begin(self, picture: Picture, pictures_per_s: float) -> Film:
        """Returns an encoder for a new video.

        Args:
            picture: A frame of the video's size. It is not added to the video.
            pictures_per_s: The frame rate, at most ``MAX_PICTURES_PER_S``.
        """


def choose_format() -> FilmFormat:
    """Returns a video format that this host can encode. Blocks for about 0.1 s.

    Raises:
        UsageError: Neither ffmpeg nor Pillow is installed.
    """
    program = find_ffmpeg()
    if program is not None and _works(program):
        return Mp4(program)
    if importlib.util.find_spec("PIL") is not None:
        return Gif()
    raise UsageError(
        "video (no encoder) needs ffmpeg or Pillow, and neither was found; "
        f"{pip_install_extra('video')}"
    )


def find_ffmpeg() -> str | None:
    """Returns the path of ffmpeg, from imageio-ffmpeg or PATH; None if not found."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        return str(get_ffmpeg_exe())
    except (ImportError, RuntimeError):  # RuntimeError: no binary for this platform.
        return shutil.which("ffmpeg")


class Mp4:
    """The video format mp4 with the codec H.264, which all browsers support.

    Args:
        program: The path of ffmpeg.
    """

    suffix = ".mp4"

    def __init__(self, program: str) -> None:
        self.why = f"mp4, with {program}"
        self._program = program

    def max_pictures(self, picture: Picture) -> int:
        """See ``FilmFormat``, the interface that this method implements."""
        return _MAX_PICTURES

    def begin(self, picture: Picture, pictures_per_s: float) -> Film:
        """See ``FilmFormat``, the interface that this method implements."""
        return _Mp4Film(self._program, picture, pictures_per_s)


class Gif:
    """The video format animated gif, with 256 colours per frame."""

    suffix = ".gif"

    @property
    def why(self) -> str:
        """See ``FilmFormat``, the interface that this method implements."""
        line = pip_install_extra("video")
        return f"gif, because no ffmpeg that writes mp4 was found; {line}"

    def max_pictures(self, picture: Picture) -> int:
        """See ``FilmFormat``, the interface that this method implements."""
        height, width, _ = picture.shape
        return max(1, _MAX_GIF_PIXELS // int(height * width))

    def begin(self, picture: Picture, pictures_per_s: float) -> Film:
        """See ``FilmFormat``, the interface that this method implements."""
        return _GifFilm(pictures_per_s)


class _Mp4Film:
    def __init__(self, program: str, picture: Picture, pictures_per_s: float) -> None:
        self._shape = picture.shape
        height, width, _ = picture.shape
        self._folder = tempfile.TemporaryDirectory(prefix="tengen-film-")
        self._path = Path(self._folder.name) / "film.mp4"
        # Write ffmpeg's log to a file: an unread pipe would fill up and block ffmpeg.
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        words = [program, "-hide_banner", "-loglevel", "error", "-nostdin", "-y"]
        words += ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}"]
        words += ["-r", f"{pictures_per_s:g}", "-i", "pipe:0", "-an"]
        # Pad frames: chroma subsampling (yuv420p) requires an even width and height.
        words += ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p"]
        words += ["-c:v", "libx264", "-crf", "18", "-movflags", "+faststart"]
        self._process = subprocess.Popen(
            [*words, str(self._path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._log,
        )

    def add(self, picture: Picture) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(_of_size(picture, self._shape).tobytes())
        except OSError:
            self._process.wait()
            raise self._error() from None

    def finish(self) -> bytes:
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(_END_S)
            if self._process.returncode:
                raise self._error()
            return self._path.read_bytes()
        except (OSError, subprocess.TimeoutExpired):
            raise self._error() from None
        finally:
            self.discard()

    def discard(self) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()
        self._folder.cleanup()

    def _error(self) -> RunError:
        self._log.seek(0)
        said = " ".join(self._log.read(500).decode(errors="replace").split())
        return RunError(
            "film (ffmpeg) cannot be encoded, ffmpeg ended with exit code "
            f"{self._process.returncode}: {said}; use another, or none for a gif"
        )


class _GifFilm:
    def __init__(self, pictures_per_s: float) -> None:
        self._duration_ms = max(20, 10 * round(100 / pictures_per_s))
        self._pictures: list[Any] = []

    def add(self, picture: Picture) -> None:
        from PIL import Image

        self._pictures.append(Image.fromarray(picture).quantize())

    def finish(self) -> bytes:
        data = io.BytesIO()
        first, *others = self._pictures
        # Pillow merges consecutive equal frames into one frame with a longer duration.
        first.save(
            data,
            "GIF",
            save_all=True,
            append_images=others,
            duration=self._duration_ms,
            loop=0,
        )
        self._pictures = []
        return data.getvalue()

    def discard(self) -> None:
        self._pictures = []


def _works(program: str) -> bool:
    """Returns whether the ffmpeg at ``program`` encodes H.264, as most builds do."""
    picture = np.zeros((16, 16, 3), np.uint8)
    try:
        film = _Mp4Film(program, picture, 10.0)
    except OSError:
        return False
    try:
        film.add(picture)
        film.add(picture)
        return len(film.finish()) > 0
    except RunError:
        return False
    finally:
        film.discard()


def _of_size(picture: Picture, shape: tuple[int, ...]) -> Picture:
    """Returns ``picture`` cropped, or padded with black, to ``shape``."""
    if picture.shape == shape:
        return picture
    laid = np.zeros(shape, np.uint8)
    height, width = np.minimum(picture.shape[:2], shape[:2])
    laid[:height, :width] = picture[:height, :width]
    return laid
