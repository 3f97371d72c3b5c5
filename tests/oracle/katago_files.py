"""Writes small networks with random weights in KataGo's file format.

Source: KataGo (lightvector/KataGo), versions 8 to 17 of its format.
"""

import gzip
from pathlib import Path

import numpy as np

SPATIAL, GLOBAL = 22, 19


class NetworkFile:
    """Builds the contents of one network file.

    Args:
        version: Format version.
        seed: Seed of the weights.
        is_binary: Whether arrays are binary.
        activation: Activation of every layer, for version 11 and later.
    """

    def __init__(self, version, seed=0, is_binary=True, activation="ACTIVATION_RELU"):
        self.version = version
        self.data = bytearray()
        self._random = np.random.RandomState(seed)
        self._is_binary = is_binary
        self._activation = activation

    def line(self, *words):
        for word in words:
            self.data += f"{word}\n".encode()

    def numbers(self, array):
        array = np.asarray(array, np.float32)
        if self._is_binary:
            self.data += b"@BIN@" + array.astype("<f4").tobytes() + b"\n"
        else:
            words = " ".join(repr(float(number)) for number in array.flat)
            self.data += words.encode() + b"\n"

    def drawn(self, *shape, spread=1.0, middle=0.0):
        return middle + spread * self._random.standard_normal(shape)

    def conv(self, name, side, inputs, outputs):
        self.line(name, side, side, inputs, outputs, 1, 1)
        spread = (2.0 / (side * side * inputs)) ** 0.5
        self.numbers(self.drawn(side, side, inputs, outputs, spread=spread))

    def norm(self, name, channels, has_scale=True):
        self.line(name, channels, 1e-3, int(has_scale), 1)
        self.numbers(self.drawn(channels, spread=0.2))
        self.numbers(np.abs(self.drawn(channels, spread=0.2, middle=1.0)) + 0.1)
        if has_scale:
            self.numbers(self.drawn(channels, spread=0.1, middle=1.0))
        self.numbers(self.drawn(channels, spread=0.2))
        self.activation(f"{name}.act")

    def activation(self, name, kind=None):
        self.line(name)
        if self.version >= 11:
            self.line(kind or self._activation)

    def matrix(self, name, inputs, outputs, gain=1.0):
        self.line(name, inputs, outputs)
        self.numbers(self.drawn(inputs, outputs, spread=gain * inputs**-0.5))

    def bias(self, name, channels):
        self.line(name, channels)
        self.numbers(self.drawn(channels, spread=0.2))

    def block(self, kind, name, channels, middle, pooled=4, side=3):
        """Writes a block; ``kind`` is ``ordinary``, ``gpool`` or a list of kinds."""
        if isinstance(kind, list):
            self.line("nested_bottleneck_block", name, len(kind))
            self.norm(f"{name}.normp", channels)
            self.conv(f"{name}.convp", 1, channels, middle)
            for index, inner in enumerate(kind):
                self.block(inner, f"{name}.{index}", middle, middle, pooled, side)
            self.norm(f"{name}.normq", middle)
            self.conv(f"{name}.convq", 1, middle, channels)
            return
        self.line(f"{kind}_block", name)
        self.norm(f"{name}.norm1", channels)
        self.conv(f"{name}.conv1", side, channels, middle)
        if kind == "gpool":
            self.conv(f"{name}.convg", side, channels, pooled)
            self.norm(f"{name}.normg", pooled)
            self.matrix(f"{name}.linearg", 3 * pooled, middle)
        self.norm(f"{name}.norm2", middle, has_scale=False)
        self.conv(f"{name}.conv2", side, middle, channels)

    def packed(self):
        return gzip.compress(bytes(self.data), mtime=0)


def tiny_network(
    version,
    seed=0,
    *,
    blocks=("ordinary", "gpool"),
    channels=8,
    is_binary=True,
    activation="ACTIVATION_RELU",
    pass_activation=None,
    num_policies=None,
    stem_side=3,
):
    """Returns the ``NetworkFile`` of a complete network."""
    file = NetworkFile(version, seed, is_binary, activation)
    file.line(f"tiny-v{version}", version, SPATIAL, GLOBAL)
    if version >= 13:
        file.line(20.0, 18.0, 22.0, 21.0, 40.0, 0.25, 30.0)
    if version >= 15:
        file.line(*[0] * 8)
    file.line("trunk", len(blocks), channels, channels, channels, 1, 4)
    if version >= 15:
        file.line(*[0] * 6)
    file.conv("stem", stem_side, SPATIAL, channels)
    file.matrix("global", GLOBAL, channels, gain=3.0)
    for index, kind in enumerate(blocks):
        file.block(kind, f"block{index}", channels, channels - 2)
    file.norm("tip", channels)
    file.line("policy")
    policies = num_policies or (1 if version < 12 else 4 if version == 16 else 2)
    if version >= 17:
        file.line(policies, 0, 0, 0)
    file.conv("p1", 1, channels, 6)
    file.conv("g1", 1, channels, 5)
    file.norm("g1norm", 5)
    file.matrix("g1linear", 15, 6)
    file.norm("p1norm", 6)
    file.conv("p2", 1, 6, policies)
    if version >= 15:
        file.matrix("pass1", 15, 6)
        file.bias("passbias", 6)
        file.activation("passact", pass_activation)
        file.matrix("pass2", 6, policies)
    else:
        file.matrix("pass", 15, policies)
    file.line("value")
    if version >= 17:
        file.line(0, 0, 0)
    file.conv("v1", 1, channels, 6)
    file.norm("v1norm", 6)
    file.matrix("v2", 18, 7)
    file.bias("v2bias", 7)
    file.activation("v2act")
    file.matrix("v3", 7, 3)
    file.bias("v3bias", 3)
    scores = 4 if version < 9 else 6
    file.matrix("score", 7, scores, gain=0.5)
    file.bias("scorebias", scores)
    file.conv("ownership", 1, 6, 1)
    return file


def write_network(path: Path, file: NetworkFile) -> Path:
    """Writes a network file, compressed if its name ends in ``.gz``."""
    data = file.packed() if path.suffix == ".gz" else bytes(file.data)
    path.write_bytes(data)
    return path
