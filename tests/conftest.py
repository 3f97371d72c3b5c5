"""What holds for every test and the processes it starts."""

import gc
import os
import signal

import pytest

# Numbers are those of CPUs, on whatever machine: nobody sees a GPU.
os.environ["CUDA_VISIBLE_DEVICES"] = ""

# A shell that starts the tests in the background has them, and all that they start,
# ignore SIGINT.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# The millions of objects that all tests are made of are no garbage. A collection that
# looks through them takes 0.9 s, and some tests ask for several collections.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="module")
def what_is_imported_is_no_garbage():
    """Nor are torch and the other packages that the first tests import."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_machine_is_too_slow(monkeypatch):
    """Errors are all that a test finds on stderr, however long a command takes."""
    monkeypatch.setattr("tengen.observe.progress_line.ProgressLine.log_s", 1e6)


@pytest.fixture(autouse=True)
def nothing_was_typed(monkeypatch):
    """No game in Python that one test typed can be opened by the next."""
    monkeypatch.setattr("tengen.games.typed._allowed", set())
