"""Takes the documentation's screenshots of the web page with a real browser.

    python scripts/screenshots.py runs --go go/9 --game tictactoe --out docs/images

Serves a folder of runs on this machine only, and opens the pages in the Chromium that
the tests use. Screenshots are WebP files of at most 60 KB; a larger one is an error.
"""

from __future__ import annotations

import argparse
import base64
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.unit.serve.chromium import Chromium, Page, find_chromium  # noqa: E402

MOST_BYTES = 60_000
QUALITIES = (85, 70, 50, 30)
READY = "document.querySelector('h1') !== null && !document.querySelector('.waiting')"
IS_TURN = "/^Your turn/.test(document.querySelector('.turn')?.innerText)"


def main() -> None:
    """Takes all screenshots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of the runs, called runs")
    parser.add_argument("--go", required=True, help="a run of Go below it")
    parser.add_argument("--game", required=True, help="a run of a game, for its curves")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    args = parser.parse_args()
    program = find_chromium()
    if program is None:
        raise SystemExit("chromium (none) is needed; apt-get install chromium")
    # Without arguments, tengen serve lists the runs below runs/ by short names.
    folder = args.folder.resolve()
    if folder.name != "runs" or not folder.is_dir():
        raise SystemExit(f"folder ({args.folder}) must be one called runs; name it")
    command = [sys.executable, "-P", "-m", "tengen", "serve", "--port", "0"]
    server = subprocess.Popen(
        command, cwd=folder.parent, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+/", server.stdout.readline())
        assert found is not None
        browser = Chromium(program)
        try:
            args.out.mkdir(parents=True, exist_ok=True)
            take(browser, found[0], args)
        finally:
            browser.close()
    finally:
        server.terminate()
        server.wait()


def take(browser: Chromium, url: str, args: argparse.Namespace) -> None:
    """Opens each page and takes its screenshot."""
    ids = {name: find(browser, url, name) for name in (args.go, args.game)}

    page = browser.page(1100, 760)
    show(page, url, "document.querySelector('.card .spark') !== null")
    keep(page, args.out / "serve-runs.webp")
    show(
        page, f"{url}runs/{ids[args.game]}", "document.querySelector('canvas') !== null"
    )
    page.resize(1100, 1060)
    page.wait("document.querySelectorAll('canvas').length >= 4")
    keep(page, args.out / "serve-run.webp")
    page.resize(1100, 760)
    # Choose a self-play game, whose record includes the policy.
    games = page.run(
        f"fetch('/api/runs/{ids[args.game]}/games').then(r => r.json()).then(all =>"
        " all.find(one => one.title.startsWith('self-play')).id)"
    )
    address = f"{url}runs/{ids[args.game]}/games?of={games}"
    show(page, address, "document.querySelector('.player') !== null")
    page.run("document.querySelector('.player button:nth-child(5)').click()")
    for _ in range(6):
        page.run("document.querySelector('.player button:nth-child(2)').click()")
    page.wait("document.querySelector('.shade') !== null")
    keep(page, args.out / "serve-game.webp")

    page = browser.page(1100, 760)
    play(page, f"{url}runs/{ids[args.go]}/play")
    keep(page, args.out / "serve-play.webp")

    page = browser.page()
    page.resize(360, 740, scale=2)
    page.dark()
    play(page, f"{url}runs/{ids[args.go]}/play")
    keep(page, args.out / "serve-phone.webp")


def find(browser: Chromium, url: str, name: str) -> str:
    """Returns the ID of a run by its name."""
    page = browser.page()
    page.open(url)
    ids = page.run(
        "fetch('/api/runs').then(r => r.json()).then(runs => runs.filter("
        f"r => r.name === {name!r}).map(r => r.id))"
    )
    if not ids:
        raise SystemExit(f"run ({name}) is not there; train it first")
    return str(ids[0])


def show(page: Page, url: str, ready: str) -> None:
    """Opens a page and waits until it has been drawn."""
    page.open(url)
    page.wait(f"{READY} && {ready}")
    page.run("document.fonts.ready.then(() => true)")


def play(page: Page, url: str) -> None:
    """Plays some moves of a game, with the model's analysis shown."""
    show(page, url, f"{IS_TURN} && true")
    page.click(".check input")
    for x, y in ((0.3, 0.3), (0.7, 0.3), (0.3, 0.7), (0.5, 0.6)):
        page.run(
            "(() => { const can = [...document.querySelectorAll('.can-play')];"
            "const all = document.querySelectorAll('.board-places button').length;"
            f"const n = Math.sqrt(all), at = Math.floor({y} * n) * n + {x} * n;"
            "can.sort((a, b) => Math.abs(a.dataset.action - at)"
            " - Math.abs(b.dataset.action - at))[0].click(); })()"
        )
        page.wait("!document.querySelector('.can-play')")
        page.wait(IS_TURN)
    page.run("document.querySelector('.buttons button:nth-child(2)').click()")
    page.wait("document.querySelector('.hint') !== null")
    page.run("scrollTo(0, 0)")


def keep(page: Page, path: Path) -> None:
    """Writes a screenshot with the highest quality that fits the size limit."""
    data = b""
    for quality in QUALITIES:
        found = page.call("Page.captureScreenshot", format="webp", quality=quality)
        data = base64.b64decode(found["data"])
        if len(data) <= MOST_BYTES:
            break
    else:
        raise SystemExit(f"{path} ({len(data)} bytes) must be {MOST_BYTES} at most")
    path.write_bytes(data)
    print(f"{path}: {len(data)} bytes")
    if page.errors:
        raise SystemExit(f"page ({path.stem}) has errors: {page.errors}")


if __name__ == "__main__":
    main()
