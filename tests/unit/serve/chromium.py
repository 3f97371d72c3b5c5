"""A headless Chromium driven through its debugging pipe, without extra packages."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
WAIT_S = 600.0
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-domain-reliability",
    "--disable-features=OptimizationHints,MediaRouter,Translate",
    "--no-default-browser-check",
    "--remote-debugging-pipe",
)


def find_chromium() -> str | None:
    """Returns the path of the browser; None if none is installed."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Chromium:
    """A browser with a new, empty profile. Not thread-safe."""

    def __init__(self, program: str) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        there, self._to = os.pipe()
        self._from, back = os.pipe()

        def connect() -> None:
            # Duplicate via high descriptors, so that neither end overwrites the other.
            ends = [os.dup(there), os.dup(back)]
            high = [os.dup2(end, 60 + place) for place, end in enumerate(ends)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._process = subprocess.Popen(
            [
                program,
                *_OPTIONS,
                f"--user-data-dir={self._profile.name}",
                "about:blank",
            ],
            preexec_fn=connect,
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(there)
        os.close(back)
        self._numbers = itertools.count(1)
        self._answers: dict[int, queue.Queue[dict[str, Any]]] = {}
        self._pages: dict[str, Page] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def page(self, width: int = 1280, height: int = 900) -> Page:
        """Returns a new page that shares no state with other pages."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call(
            "Target.createTarget", url="about:blank", browserContextId=context
        )["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        page = Page(self, attached["sessionId"])
        self._pages[attached["sessionId"]] = page
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        return page

    def call(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """Sends a command and returns its result."""
        number = next(self._numbers)
        answer: queue.Queue[dict[str, Any]] = queue.Queue()
        self._answers[number] = answer
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        found = answer.get(timeout=WAIT_S)
        if "error" in found:
            raise RuntimeError(f"{method}: {found['error']}")
        result: dict[str, Any] = found["result"]
        return result

    def close(self) -> None:
        """Ends the browser and removes its profile."""
        with contextlib.suppress(Exception):
            self.call("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        self._reader.join(10)
        os.close(self._from)
        self._profile.cleanup()

    def _read(self) -> None:
        rest = b""
        while data := os.read(self._from, 1 << 20):
            *messages, rest = (rest + data).split(b"\0")
            for text in messages:
                message = json.loads(text)
                if "id" in message:
                    self._answers.pop(message["id"]).put(message)
                elif page := self._pages.get(message.get("sessionId", "")):
                    page.hear(message["method"], message["params"])


class Page:
    """One tab, with the errors and requests that it has caused."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser = browser
        self._session = session
        self.errors: list[str] = []
        self.requests: list[str] = []

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def hear(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"])[:500])
        elif method == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.errors.append(json.dumps(params["args"])[:500])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(json.dumps(params["entry"])[:500])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def resize(self, width: int, height: int, scale: float = 1.0) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )

    def dark(self, is_dark: bool = True) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else ""}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        """Opens ``url`` and waits until the page has rendered something."""
        self.call("Page.navigate", url=url)
        self.wait("document.querySelector('#app > *') !== null")

    def leave(self) -> None:
        """Leaves the page, which would log an error when its server ends."""
        self.call("Page.navigate", url="about:blank")

    def run(self, code: str) -> Any:
        """Returns the value of a JavaScript expression."""
        found = self.call(
            "Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"])
        return found["result"].get("value")

    def wait(self, condition: str, timeout_s: float = WAIT_S) -> Any:
        """Waits until a JavaScript expression is true; returns its value."""
        end_s = time.monotonic() + timeout_s
        value = None
        while time.monotonic() < end_s:
            with contextlib.suppress(RuntimeError):  # while a page loads
                if value := self.run(condition):
                    return value
            time.sleep(0.05)
        text = self.run("document.body.innerText")
        raise AssertionError(f"never {condition}; the page says: {text[:2000]}")

    def click(self, selector: str) -> None:
        """Waits for an element and clicks on its centre."""
        name = json.dumps(selector)
        self.wait(f"document.querySelector({name}) !== null")
        box = self.run(
            f"(() => {{ const e = document.querySelector({name});"
            "e.scrollIntoView({block: 'center'});"
            "const r = e.getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )

    def press(self, key: str, kinds: tuple[str, ...] = ("keyDown", "keyUp")) -> None:
        """Presses a key, such as ``ArrowLeft``, ``Enter`` or a small letter."""
        codes = {"Enter": 13, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38}
        codes |= {"ArrowRight": 39, "ArrowDown": 40, "End": 35, "Home": 36}
        fields = {
            "key": key,
            "code": key,
            "windowsVirtualKeyCode": codes.get(key) or ord(key.upper()),
        }
        if key == "Enter":
            fields["text"] = "\r"
        for kind in kinds:
            self.call("Input.dispatchKeyEvent", type=kind, **fields)

    def screenshot(self, path: Path | str, whole: bool = False) -> None:
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(picture["data"]))
