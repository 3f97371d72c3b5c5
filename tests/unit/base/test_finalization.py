"""The end of a process whose daemon threads are in calls of the core."""

import os
import subprocess
import sys

# The object is destroyed while the interpreter is finalized: then the thread's call
# returns and asks for the GIL, which it never gets.
WAITS = """
import os, sys, threading, time
from tengen import _core

fifo = sys.argv[1]
words = (os.fsencode(fifo), os.O_RDONLY, 0)
threading.Thread(target=_core.open_owned, args=words, daemon=True).start()

class Late:
    def __init__(self):
        self.kept = fifo, os.open, os.O_WRONLY, time.sleep

    def __del__(self):
        fifo, open_file, flags, sleep = self.kept
        open_file(fifo, flags)  # waits until the thread opens it too
        sleep(0.5)
        print("finalized", flush=True)

late = Late()
"""


def test_a_call_that_returns_during_finalization_does_not_abort(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    done = subprocess.run(
        [sys.executable, "-c", WAITS, str(fifo)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("finalized\n", "", 0)
