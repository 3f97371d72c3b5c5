"""Functions and classes that Ray serializes by value and runs on a cluster's hosts.

Ray adds the working directory to the module search path of its workers, so code that
runs in a worker imports only Python's standard library. A role's own process imports
tengen, and searches the working directory only for a task that the user typed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def search_path() -> list[str]:
    """Returns a module search path with tengen's parent folder and PYTHONPATH."""
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    home = Path(__file__).resolve().parents[3]
    return [str(home), *(os.path.abspath(folder) for folder in named if folder)]


def probe_function() -> Any:
    """Returns a function that reports the software versions of the host it runs on.

    The function returns the versions of tengen and Python, an import error if there is
    one, and whether the run's file ``marker`` contains ``text``.
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
        lines = done.stderr.strip().splitlines() or ["it ended without output"]
        return {
            "host": platform.node(),
            "python": platform.python_version(),
            "tengen": done.stdout.strip(),
            "error": "" if done.returncode == 0 else lines[-1],
            "has_run": "yes" if marker and found == text else "",
        }

    return probe


def holder_class(ray: Any) -> Any:
    """Returns the class of a Ray actor that starts a role process.

    Args:
        ray: The imported package ``ray``.
    """

    class Holder:
        """Starts a role process on the actor's host, and waits for its exit."""

        def __init__(
            self,
            paths: list[str],
            directory: str,
            words: list[str],
            environment: dict[str, str],
        ) -> None:
            import os
            import subprocess
            import sys

            named = os.environ.get("PYTHONPATH")
            search = os.pathsep.join([*paths, *([named] if named else [])])
            place = f"node {ray.get_runtime_context().get_node_id()[:8]}"
            self._process = subprocess.Popen(
                [sys.executable, *words],
                stdin=subprocess.DEVNULL,
                env={
                    **os.environ,
                    **environment,
                    "PYTHONPATH": search,
                    "TENGEN_PLACE": place,
                },
                # The task may be a Python file in this folder.
                cwd=directory if os.path.isdir(directory) else None,
            )

        @ray.method(concurrency_group="tell")  # type: ignore[untyped-decorator]
        def begun(self) -> None:
            """Does nothing. The call returns when Ray has started the actor."""

        @ray.method(concurrency_group="tell")  # type: ignore[untyped-decorator]
        def kill(self) -> None:
            self._process.kill()

        @ray.method(concurrency_group="wait")  # type: ignore[untyped-decorator]
        def wait(self) -> int:
            return self._process.wait()

    return ray.remote(concurrency_groups={"tell": 1, "wait": 1})(Holder)
