"""Code that is sent by value to the hosts of a Ray cluster.

Ray puts the working directory into its workers' search path, so code that runs in a
worker imports only Python's standard library. A role's own process imports tengen, and
looks in the working directory only for a typed game.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "holder_class", "probe_function", "search_path"]

FOLDER = "FOLDER"
"""Placeholder in arguments for a folder of the host that they are sent to."""


def search_path() -> list[str]:
    """Returns the folder of tengen, and the folders of PYTHONPATH."""
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    home = Path(__file__).resolve().parents[3]
    return [str(home), *(os.path.abspath(folder) for folder in named if folder)]


def probe_function() -> Any:
    """Returns a function that reports what a host has.

    It reports the versions ``tengen`` and ``python``, and whether ``marker``, a file of
    the run, has the expected text.
    """

    def probe(paths: list[str], marker: str, text: str) -> dict[str, str]:
        import os
        import platform
        import subprocess
        import sys

        found = ""
        try:
            with open(marker) as file:
                found = file.read().strip()
        except OSError:
            pass
        done = subprocess.run(
            [sys.executable, "-P", "-c", "import tengen; print(tengen.__version__)"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
        )
        lines = done.stderr.strip().splitlines() or ["it ended without a word"]
        return {
            "host": platform.node(),
            "python": platform.python_version(),
            "tengen": done.stdout.strip(),
            "error": "" if done.returncode == 0 else lines[-1],
            "has_run": "yes" if marker and found == text else "",
        }

    return probe


def holder_class(ray: Any) -> Any:
    """Returns the actor class that holds a role process.

    Args:
        ray: The package.
    """

    class Holder:
        """Starts a role process on its own host, and passes lines to and from it.

        If the host has the run, which ``marker`` with the content ``text`` shows, the
        process works in the run directory, else on a mirror of it.
        """

        def __init__(
            self,
            paths: list[str],
            directory: str,
            marker: str,
            text: str,
            near: list[str],
            far: list[str],
            far_env: dict[str, str],
        ) -> None:
            import os
            import subprocess
            import sys
            import tempfile

            try:
                with open(marker) as file:
                    is_near = file.read().strip() == text
            except OSError:
                is_near = False
            if not is_near and marker and not far:
                # A host that joined later: the actor's death is reported, and another
                # host tried.
                raise RuntimeError(f"host {os.uname().nodename} has not the run")
            env = dict(os.environ)
            arguments = near
            if not is_near and far:
                folder = os.path.join(tempfile.gettempdir(), far_env["FOLDER"])
                arguments = [folder if word == "FOLDER" else word for word in far]
                env["TENGEN_RUN_TOKEN"] = far_env["TENGEN_RUN_TOKEN"]
            named = os.environ.get("PYTHONPATH")
            env["PYTHONPATH"] = os.pathsep.join([*paths, *([named] if named else [])])
            self._process = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=env,
                # A typed game may be in this folder.
                cwd=directory if os.path.isdir(directory) else None,
            )

        @ray.method(concurrency_group="write")  # type: ignore[untyped-decorator]
        def write(self, line: bytes) -> None:
            self._write(line)

        def _write(self, line: bytes) -> None:
            stdin = self._process.stdin
            try:
                stdin.write(line)  # type: ignore[union-attr]
                stdin.flush()  # type: ignore[union-attr]
            except (BrokenPipeError, ValueError):
                pass  # the reader notices the end

        @ray.method(concurrency_group="write")  # type: ignore[untyped-decorator]
        def where(self) -> tuple[str, str]:
            import platform

            return ray.get_runtime_context().get_node_id(), platform.node()

        @ray.method(concurrency_group="read")  # type: ignore[untyped-decorator]
        def read(self, line: bytes) -> bytes:
            if line:
                self._write(line)
            return self._process.stdout.readline()  # type: ignore[union-attr]

        @ray.method(concurrency_group="end")  # type: ignore[untyped-decorator]
        def kill(self) -> None:
            self._process.kill()

        @ray.method(concurrency_group="end")  # type: ignore[untyped-decorator]
        def end(self, timeout_s: float) -> int:
            import subprocess

            try:
                return self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
                return self._process.wait()

    groups = {"write": 1, "read": 1, "end": 1}
    return ray.remote(concurrency_groups=groups)(Holder)
