"""Measures how fast a browser paints the pages of `tengen serve`, and their sizes.

    python benchmarks/serve/serve_paint.py RUN... --loads 9

Each load uses a new browser context, so its cache is empty. Times come from the
browser, in ms from the start of loading: the first contentful paint, and the drawing of
the list of runs, of a run with its curves, and of a board to play on. Bytes are those
received on the connection, headers included. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tengen.run import machine_line
from tests.unit.serve.chromium import Chromium, find_chromium

SEEN = (
    "(() => { const paint = performance.getEntriesByName('first-contentful-paint')[0];"
    "const all = [...performance.getEntriesByType('navigation'),"
    "...performance.getEntriesByType('resource')];"
    "return paint && { first_paint_ms: paint.startTime, drawn_ms: performance.now(),"
    "bytes: all.reduce((sum, each) => sum + each.transferSize, 0) }; })()"
)


def main() -> None:
    """Measures and prints the times and sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--loads", type=int, default=9)
    args = parser.parse_args()
    program = find_chromium()
    if program is None:
        raise SystemExit("chromium (none) is needed; apt-get install chromium")
    command = [sys.executable, "-P", "-m", "tengen", "serve", "--port", "0", *args.runs]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    browser = Chromium(program)
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+/", server.stdout.readline())
        assert found is not None
        print(json.dumps(measure(browser, found[0], args.loads), indent=2))
    finally:
        browser.close()
        server.terminate()
        server.wait()


def measure(browser: Chromium, url: str, loads: int) -> dict[str, object]:
    """Returns the median times and sizes of each page, and its worst first paint."""
    page = browser.page()
    page.open(url)
    ids = page.run("fetch('/api/runs').then(r => r.json()).then(l => l.map(r => r.id))")
    pages = {
        "runs": (url, ".card"),
        "run": (f"{url}runs/{ids[0]}", ".chart canvas"),
        "play": (f"{url}runs/{ids[0]}/play", ".board .can-play"),
    }
    told: dict[str, object] = {"machine": machine_line(), "loads": loads}
    for name, (address, drawn) in pages.items():
        seen = []
        for _ in range(loads):
            page = browser.page()
            page.call("Page.navigate", url=address)
            page.wait(f"document.querySelector('{drawn}') !== null")
            seen.append(page.wait(SEEN))
            page.leave()
        told[name] = {
            key: round(statistics.median(one[key] for one in seen)) for key in seen[0]
        }
        told[f"{name}, worst first paint"] = round(
            max(one["first_paint_ms"] for one in seen)
        )
    return told


if __name__ == "__main__":
    main()
