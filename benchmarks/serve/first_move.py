"""Times a new user's steps from a wheel to the first move in a browser.

    make wheels
    python benchmarks/serve/first_move.py dist/tengen_rl-*-cp311-*.whl
    python benchmarks/serve/first_move.py WHEEL --find-links FOLDER   wheels on disk

Starts with an empty environment and takes a user's three steps: ``pip install
'WHEEL[serve]'``, ``tengen serve``, and opening the address in a browser. There it opens
the page of the first bundled player, clicks a move and waits for the reply. The first
step's time depends mostly on the source of the packages, a network or pip's cache, so
each step is reported separately. Prints one JSON object, times in seconds.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tengen.run import machine_line
from tests.unit.serve.chromium import Chromium, find_chromium

PLAYER = "connect4"
# True when the game's list of moves shows both the user's move and the reply.
ANSWERED = "document.querySelectorAll('.moves li').length === 2"


def main() -> None:
    """Measures and prints the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--find-links", type=Path, help="a folder of wheels for pip")
    args = parser.parse_args()
    program = find_chromium()
    if program is None:
        raise SystemExit("chromium (none) is needed; apt-get install chromium")
    if not args.wheel.is_file():
        raise SystemExit(f"wheel ({args.wheel}) is not there; make wheels builds it")
    with tempfile.TemporaryDirectory() as folder:
        told = measure(Path(folder), args.wheel.resolve(), args.find_links, program)
    print(json.dumps({"machine": machine_line(), **told}, indent=2))


def measure(
    folder: Path, wheel: Path, links: Path | None, program: str
) -> dict[str, float]:
    """Returns the seconds of each step, in order, and the total of a user's steps."""
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    told = {}
    begun_s = since_s = time.monotonic()

    def done(step: str) -> None:
        nonlocal since_s
        now_s = time.monotonic()
        told[step], since_s = round(now_s - since_s, 2), now_s

    install = [str(venv / "bin" / "pip"), "install", "--quiet", f"{wheel}[serve]"]
    if links is not None:
        install += ["--find-links", str(links.resolve())]
    subprocess.run(install, check=True)
    done("pip_install_s")
    command = [str(venv / "bin" / "tengen"), "serve", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder)
    browser = None
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+/", server.stdout.readline())
        assert found is not None
        done("serve_listens_s")
        browser = Chromium(program)
        page = browser.page()
        page.open(found[0])
        page.wait(f"document.querySelector(\"a[href='/players/{PLAYER}']\") !== null")
        done("browser_shows_players_s")
        page.click(f"a[href='/players/{PLAYER}']")
        page.wait("document.querySelector('.board .can-play') !== null")
        done("board_s")
        page.click("[data-action='3']")
        page.wait(ANSWERED)
        done("move_and_answer_s")
        page.leave()
    finally:
        if browser is not None:
            browser.close()
        server.terminate()
        server.wait()
    told["all_s"] = round(since_s - begun_s, 2)
    return told


if __name__ == "__main__":
    main()
