"""Evaluations a second of a network alone, with separate and with fused kernels.

    python benchmarks/gpu/network_rates.py --devices cuda:0

"separate": torch's kernels one after the other. "folded": norms in the convolutions,
and on a GPU a layer is one kernel of cuDNN, as self-play computes. The two take turns
at each number of rows. A GPU replays CUDA graphs, with nothing copied or unpacked.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tengen.bench.random_model import publish_random
from tengen.inference.device import make_device
from tengen.inference.programs import rate
from tengen.inference.torch_backend import LoadedHead, load_inference_head
from tengen.run import RunDirectory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", default="cuda:0", help="one device (cuda:0)")
    parser.add_argument("--game", default="go/19/nosuicide/planes=minigo")
    parser.add_argument("--net", default="minigo:6x64")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="bf16")
    parser.add_argument("--rows", default="128,256,512,1024,2048,4096")
    parser.add_argument("--seconds", type=float, default=0.3, help="of each (0.3)")
    args = parser.parse_args()
    device = make_device(args.devices)
    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory.create_or_resume(Path(folder))
        model = publish_random(run, args.game, args.net)
        ways: dict[str, LoadedHead] = {}
        for way in ("separate", "folded"):
            head, signature = load_inference_head(
                model, args.precision, folds_norms=way == "folded"
            )
            ways[way] = LoadedHead(head.to(device.where), signature)
    for num_rows in map(int, args.rows.split(",")):
        rates = {
            way: rate(loaded, device, num_rows, args.seconds)
            for way, loaded in ways.items()
        }
        print(
            num_rows, ", ".join(f"{way} {found:,.0f}" for way, found in rates.items())
        )


if __name__ == "__main__":
    main()
