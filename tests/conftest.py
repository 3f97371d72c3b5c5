"""Fixtures and settings for all tests and the processes that they start."""

import gc
import os
import signal

import hypothesis
import pytest

# Hides all GPUs, so that every machine computes the expected numbers on its CPU.
os.environ["CUDA_VISIBLE_DEVICES"] = ""

# Several tests run at once. If each had several threads, idle threads of torch would
# spin while others wait for a core.
os.environ["OMP_NUM_THREADS"] = "1"

# A shell that starts the tests in the background makes the tests and their children
# ignore SIGINT, so the default handler is restored.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# A test's time depends on the machine, so no example has a deadline.
hypothesis.settings.register_profile("tengen", deadline=None)
hypothesis.settings.load_profile("tengen")


# Test collection creates millions of objects that live until the end. A garbage
# collection over them takes 0.9 s, and some tests run several, so they are frozen.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="module")
def what_is_imported_is_no_garbage():
    """Also freezes torch and the other packages that the first tests import."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_machine_is_too_slow(monkeypatch):
    """Errors are all that a test finds on stderr, however long a command takes."""
    monkeypatch.setattr("tengen.observe.progress_line.ProgressLine.log_s", 1e6)


@pytest.fixture(autouse=True)
def nothing_was_typed(monkeypatch):
    """Prevents a test from opening a Python game that an earlier test allowed."""
    monkeypatch.setattr("tengen.games.typed._allowed", set())
