"""What a server costs while pages are open: processor time, bytes, time to answer.

python benchmarks/serve/serve_pages.py RUN... --pages 20 --seconds 60
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import subprocess
import sys
import threading
import time

from tengen.observe.cpu_time import tree_cpu_s, tree_memory_bytes
from tengen.run import machine_line

ASKED = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0)
    args = parser.parse_args()
    command = [sys.executable, "-m", "tengen", "serve", "--port", "0", *args.runs]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.search(r":(\d+)/", server.stdout.readline())
        assert found is not None
        print(json.dumps(measure(server.pid, int(found[1]), args), indent=2))
    finally:
        server.terminate()
        server.wait()


def measure(server: int, port: int, args: argparse.Namespace) -> dict[str, object]:
    runs = json.loads(ask(port, "/api/runs"))
    idle_s, _ = cpu_over(server, args.seconds / 2)
    counts = [0] * args.pages
    for page in range(args.pages):
        # Half of the pages show the list, the others a run.
        run = runs[page % len(runs)]["id"]
        path = f"/api/runs/{run}/changes" if page % 2 else "/api/changes"
        threading.Thread(
            target=hear, args=(port, path, counts, page), daemon=True
        ).start()
    time.sleep(3)
    before = sum(counts)
    busy_s, passed_s = cpu_over(server, args.seconds)
    answered_ms = []
    for _ in range(ASKED):
        begun_s = time.perf_counter()
        ask(port, f"/api/runs/{runs[0]['id']}")
        answered_ms.append(1e3 * (time.perf_counter() - begun_s))
    shell = ("/", "/assets/app.js", "/assets/style.css", "/assets/icon.svg")
    return {
        "machine": machine_line(),
        "runs": len(runs),
        "pages": args.pages,
        "cpu_share_without_pages": round(idle_s / (args.seconds / 2), 4),
        "cpu_share_with_pages": round(busy_s / passed_s, 4),
        "bytes_per_s_to_all_pages": round((sum(counts) - before) / passed_s, 1),
        "answer_median_ms": round(sorted(answered_ms)[ASKED // 2], 1),
        "memory_mb": round((tree_memory_bytes(server) or 0) / 1e6, 1),
        "page_bytes_gzip": sum(len(ask(port, path, "gzip")) for path in shell),
    }


def cpu_over(server: int, seconds: float) -> tuple[float, float]:
    begun_s, before_s = time.perf_counter(), tree_cpu_s(root=server) or 0.0
    time.sleep(seconds)
    used_s = (tree_cpu_s(root=server) or 0.0) - before_s
    return used_s, time.perf_counter() - begun_s


def ask(port: int, path: str, encoding: str = "identity") -> bytes:
    """Returns an answer as it travels."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers={"Accept-Encoding": encoding})
        return connection.getresponse().read()
    finally:
        connection.close()


def hear(port: int, path: str, counts: list[int], page: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", path)
    reply = connection.getresponse()
    while line := reply.readline():
        counts[page] += len(line)


if __name__ == "__main__":
    main()
