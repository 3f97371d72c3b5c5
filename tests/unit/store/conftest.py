"""Makes the helpers beside the tests importable, and stores for them."""

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from tengen.store import Store, StoreConfig

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def folder():
    """A folder whose name leaves room for a socket's; pytest's own are too long."""
    made = Path(tempfile.mkdtemp(prefix="tengen-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(params=["here", "host", "net"])
def open_store(request, folder):
    """Makes stores of the tables given, and returns a client of each."""
    with contextlib.ExitStack() as stack:

        def make(*tables, memory_bytes=1 << 20):
            if request.param == "here":
                return stack.enter_context(
                    Store(StoreConfig.of(tables, memory_bytes=memory_bytes, seed=5))
                )
            if request.param == "net":
                config = StoreConfig.of(
                    tables, memory_bytes=memory_bytes, seed=5, listen="127.0.0.1:0"
                )
                server = stack.enter_context(Store(config))
                return stack.enter_context(Store.connect(str(server.address)))
            directory = folder / "store"
            stack.enter_context(
                Store(
                    StoreConfig.of(
                        tables, memory_bytes=memory_bytes, seed=5, directory=directory
                    )
                )
            )
            return stack.enter_context(Store.connect(directory))

        yield make
