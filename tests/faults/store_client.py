"""A client that is killed: ``store_client.py write|use DIRECTORY LOG COUNT``."""

import os
import sys
from pathlib import Path

import numpy as np

from tengen.store import Store


def write(store: Store, count: int) -> None:
    """Inserts the items 0 to count - 1, from where the last client was killed."""
    with store.writer("writer", "queue") as writer:
        for value in range(writer.next_sequence, count):
            writer.append({"value": np.int64(value)})
            writer.insert("queue", 1, sequence=value)


def use(store: Store, log: Path) -> None:
    """Uses batches for ever, and notes each before and after it is acknowledged."""
    with log.open("ab", buffering=0) as file:
        for batch in store.table("queue").sampler(3):
            values = batch.columns["value"].astype("<i8").tobytes()
            os.write(file.fileno(), b"?" + values)
            batch.ack()
            os.write(file.fileno(), b"!" + values)


if __name__ == "__main__":
    _, action, directory, log, count = sys.argv
    with Store.connect(directory) as opened:
        if action == "write":
            write(opened, int(count))
        else:
            use(opened, Path(log))
