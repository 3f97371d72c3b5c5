"""The processor time of tengen serve with 20 pages open, which ask every two seconds.

    python benchmarks/serve/serve_polls.py

Five runs of which none trains, then one that tells of a turn twice a second. Half of
the pages show the list of runs, the others a run.
"""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tengen.observe import EventWriter
from tengen.run import RunDirectory
from tests.unit.serve.made_runs import learned, write_events

PORT = 8555
PAGES, SECONDS = 20, 24.0


def make(path: Path) -> EventWriter:
    run = RunDirectory.create_or_resume(path)
    run.write_run({"config": {"task": "tictactoe"}})
    return write_events(run, range(1, 100))


def look(path: str, stop: threading.Event, sent: list[int]) -> None:
    tag = None
    connection = http.client.HTTPConnection("127.0.0.1", PORT)
    while not stop.wait(2.0):
        headers = {"Accept-Encoding": "gzip"}
        headers |= {"If-None-Match": tag} if tag else {}
        connection.request("GET", path, headers=headers)
        reply = connection.getresponse()
        sent.append(len(reply.read()))
        tag = reply.headers.get("etag")


def cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    writers = [make(folder / "runs" / f"r{i}") for i in range(5)]
    command = [sys.executable, "-P", "-m", "tengen", "serve", "--port", str(PORT)]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE)
    assert server.stdout is not None
    server.stdout.readline()
    for num_runs in (5, 1):
        stop, sent = threading.Event(), list[int]()
        for i in range(PAGES):
            path = f"/api/runs/r{i // 2 % num_runs}" if i % 2 else "/api/runs"
            threading.Thread(target=look, args=(path, stop, sent)).start()
            time.sleep(0.1)
        time.sleep(3.0)
        before_s, begun_s = cpu_s(server.pid), time.monotonic()
        sent.clear()
        while (span_s := time.monotonic() - begun_s) < SECONDS:
            time.sleep(0.5)
            if num_runs == 1:
                writers[0].write("turn", **learned(1000 + int(10 * span_s), 0.5))
        share = (cpu_s(server.pid) - before_s) / span_s
        print(f"{num_runs} runs: {share:.1%} of a core, {sum(sent) / span_s:,.0f} B/s")
        stop.set()
    server.terminate()


if __name__ == "__main__":
    main()
