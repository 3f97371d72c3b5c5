"""Golden files written by TensorFlow, and the values that they contain."""

from pathlib import Path
from typing import TypeVar

import numpy as np

from tengen.errors import TengenError

T = TypeVar("T")

GOLDEN = Path(__file__).parents[2] / "golden" / "minigo"
TASK = "go/5/nosuicide/planes=minigo"
PREFIX = GOLDEN / "model.ckpt"
SHARD = GOLDEN / "model.ckpt.data-00000-of-00001"
GRAPH = GOLDEN / "frozen.pb"
GAME = GOLDEN / "selfplay" / "000004" / "node-0" / "00" / "game-2.tfrecord.zz"


def expected():
    with np.load(GOLDEN / "expected.npz") as file:
        return {name: file[name] for name in file.files}


def flipped(data, place):
    """Returns a copy of ``data`` with one byte changed."""
    return data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]


def refusal(read):
    """Returns the one-line error message and None, or "" and the result."""
    try:
        return "", read()
    except TengenError as error:
        text = str(error)
    assert text.count("; ") >= 1, text
    assert "\n" not in text, text
    return text, None
