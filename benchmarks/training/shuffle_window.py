"""What a large window costs the role shuffle: memory, and rows a CPU-second.

    python benchmarks/training/shuffle_window.py --game go/9 --rows 5000000

Plays some games with a random network, repeats their segment until the window is full,
and takes one turn of shuffling in this process. Prints a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import threading
import time
from pathlib import Path

from tengen.bench.learner import played_window
from tengen.experience import (
    GameWindow,
    SamplesPerInsertConfig,
    SegmentReader,
    ShuffledRows,
    Shuffler,
    WindowConfig,
    predicted_window_bytes,
)
from tengen.experience.games.archive import pack
from tengen.run import NumberedFolder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="go/9")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--games", type=int, default=400)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tengen-bench-") as folder:
        print(json.dumps(measure(args, Path(folder))))


def measure(args: argparse.Namespace, folder: Path) -> dict[str, float]:
    """Returns the figures."""
    played_window(args.game, args.games, False, folder).close()
    rest_bytes = repeat_segment(folder / "experience", args.rows)
    config = WindowConfig(
        min_rows=args.rows,
        limiter=SamplesPerInsertConfig(samples_per_row=4.0, max_samples=args.samples),
    )
    shuffled = NumberedFolder(folder / "shuffled")
    before = time.process_time()
    shuffler = Shuffler(
        shuffled,
        lambda state: GameWindow(
            args.game, folder / "experience", config, 0, state, auxiliary=True
        ),
        256,
        args.threads,
    )
    shuffler.window.refresh()
    loaded = time.process_time()
    turn = shuffler.turn(threading.Event())
    assert turn is not None
    drawn = time.process_time()
    num_samples = sum(turn.shard_rows)
    rows = ShuffledRows(args.game, shuffled)
    rows.refresh()
    num_read, read_start = 0, time.process_time()
    while rows.available() >= 256 and time.process_time() - read_start < 5:
        rows.sample(256).ack()
        num_read += 256
    read_s = time.process_time() - read_start
    sizes = (path.stat().st_size for path in shuffled.path.glob("*/*"))
    return {
        "window_rows": turn.window_rows,
        "rest_bytes_per_row": rest_bytes,
        "window_bytes": turn.window_bytes,
        "predicted_bytes": predicted_window_bytes(
            args.game, folder / "experience", config, shuffler.window.state()
        ),
        "peak_rss_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "loaded_rows_per_cpu_s": turn.num_rows / (loaded - before),
        "shuffled_rows_per_cpu_s": num_samples / (drawn - loaded),
        "read_rows_per_cpu_s": num_read / read_s,
        "shard_bytes_per_row": sum(sizes) / num_samples,
    }


def repeat_segment(experience: Path, num_rows: int) -> float:
    """Copies the one segment there, as later generations; returns bytes a row."""
    (path,) = experience.glob("*/*/*.npz")
    with SegmentReader(path) as reader:
        columns = {name: reader.read(name) for name in reader.names()}
        meta = {name: value for name, value in reader.meta.items() if name != "schema"}
    for generation in range(2, -(-num_rows // meta["num_rows"]) + 1):
        data = pack({**meta, "generation": generation}, columns, deflates=True)
        (path.parent / f"{generation:06d}.npz").write_bytes(data)
    return float(path.stat().st_size / meta["num_rows"])


if __name__ == "__main__":
    main()
