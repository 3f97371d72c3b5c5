#!/usr/bin/env python3
"""Writes the files of this folder by TensorFlow itself; needs tensorflow-cpu.

::

    pip install tensorflow-cpu==2.21.0
    python tests/golden/minigo/make.py

The tests read the files and need no TensorFlow. They are of a board of side 5: a
network of one block and eight channels after a step of training, as checkpoint and as
frozen graph, its answers to some positions, and examples of games.

The layers are those of MLPerf training v2.1, minigo, under the names that TensorFlow
gives them there. TensorFlow convolves on CPUs with the channels last, so that planes
and what the heads see are transposed.
"""

from __future__ import annotations

import os
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow.compat.v1 as tf

FOLDER = Path(__file__).parent
SIDE, NUM_BLOCKS, NUM_CHANNELS, FC_WIDTH = 5, 1, 8, 6
NUM_CELLS = SIDE * SIDE
NUM_ROWS = 6
FIRST_STEP = 12344


class Layers:
    """Makes layers and numbers them by kind, as TensorFlow's do."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def scope(self, kind: str):
        index = self.counts.get(kind, 0)
        self.counts[kind] = index + 1
        return tf.variable_scope(f"{kind}_{index}" if index else kind)

    def conv(self, x, side: int, num_outputs: int):
        with self.scope("conv2d"):
            shape = (side, side, x.shape[3], num_outputs)
            kernel = tf.get_variable("kernel", shape, initializer=drawn(0.3))
            return tf.nn.conv2d(x, kernel, strides=1, padding="SAME")

    def norm(self, x, has_scale: bool = True):
        size = (x.shape[3],)
        with self.scope("batch_normalization"):
            if has_scale:
                gamma = tf.get_variable("gamma", size, initializer=drawn(0.2, 1.0))
                beta = tf.get_variable("beta", size, initializer=drawn(0.3))
            mean = tf.get_variable(
                "moving_mean", size, initializer=drawn(0.3), trainable=False
            )
            var = tf.get_variable(
                "moving_variance", size, initializer=drawn(0.2, 1.5), trainable=False
            )
        y = (x - mean) / tf.sqrt(var + 1e-5)
        return y * gamma + beta if has_scale else y

    def dense(self, x, num_outputs: int):
        with self.scope("dense"):
            shape = (x.shape[1], num_outputs)
            kernel = tf.get_variable("kernel", shape, initializer=drawn(0.4))
            bias = tf.get_variable("bias", (num_outputs,), initializer=drawn(0.3))
            return tf.matmul(x, kernel) + bias


def drawn(deviation: float, mean: float = 0.0):
    draws.append(0)
    # Never below 0.1 of the mean, so that a variance is one.
    return tf.truncated_normal_initializer(mean, deviation, seed=len(draws))


draws: list[int] = []


def network(planes):
    """Returns policy logits and Black's value before its tanh."""
    layers = Layers()
    x = tf.transpose(planes, (0, 2, 3, 1))
    x = tf.nn.relu(layers.norm(layers.conv(x, 3, NUM_CHANNELS)))
    for _ in range(NUM_BLOCKS):
        y = tf.nn.relu(layers.norm(layers.conv(x, 3, NUM_CHANNELS)))
        y = layers.norm(layers.conv(y, 3, NUM_CHANNELS))
        x = tf.nn.relu(x + y)

    def head(num_outputs: int):
        y = tf.nn.relu(layers.norm(layers.conv(x, 1, num_outputs), has_scale=False))
        return tf.reshape(tf.transpose(y, (0, 3, 1, 2)), (-1, num_outputs * NUM_CELLS))

    policy = layers.dense(head(2), NUM_CELLS + 1)
    hidden = tf.nn.relu(layers.dense(head(1), FC_WIDTH))
    return policy, layers.dense(hidden, 1)


def positions(rng: np.random.Generator, num_rows: int) -> np.ndarray:
    """Returns planes ``[R, 13, 5, 5]`` that could be a game's: no stone on another."""
    planes = np.zeros((num_rows, 13, SIDE, SIDE), np.uint8)
    for row in planes:
        for ply in range(4):
            stones = rng.integers(0, 3, (SIDE, SIDE))
            row[2 * ply], row[2 * ply + 1] = stones == 1, stones == 2
        row[8] = rng.integers(0, 2)
        liberties = rng.integers(0, 3, (SIDE, SIDE))
        for index in range(3):
            row[9 + index] = (liberties == index) & ((row[0] | row[1]) > 0)
        row[12] = rng.integers(0, 2, (SIDE, SIDE)) & (1 - (row[0] | row[1]))
    return planes


def write_network(rng: np.random.Generator) -> dict[str, np.ndarray]:
    planes = positions(rng, NUM_ROWS)
    given = tf.placeholder(tf.float32, (None, 13, SIDE, SIDE), "planes")
    policy, value = network(given)
    policy = tf.identity(policy, "policy_logits")
    value = tf.tanh(tf.reshape(value, (-1,)), "value_output")
    step = tf.train.get_or_create_global_step()
    loss = tf.reduce_mean(tf.square(policy)) + tf.reduce_mean(tf.square(value - 0.5))
    train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss, step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(tf.assign(step, FIRST_STEP))
        session.run(train, {given: planes})
        tf.train.Saver().save(
            session,
            str(FOLDER / "model.ckpt"),
            write_meta_graph=False,
            write_state=False,
        )
        answers = session.run([policy, value], {given: planes})
        frozen = tf.graph_util.convert_variables_to_constants(
            session, session.graph_def, ["policy_logits", "value_output"]
        )
    (FOLDER / "frozen.pb").write_bytes(frozen.SerializeToString())
    return {"planes": planes, "policy_logits": answers[0], "value": answers[1]}


def write_game(
    rng: np.random.Generator, name: str, num_rows: int, layout: str = "nchw"
) -> dict[str, np.ndarray]:
    """Writes the examples of a game, and returns what is in them."""
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    planes = positions(rng, num_rows)
    visits = rng.integers(0, 50, (num_rows, NUM_CELLS + 1)) * rng.integers(
        0, 2, (num_rows, NUM_CELLS + 1)
    )
    visits[:, 0] += 1
    policy = (visits / visits.sum(1, keepdims=True)).astype(np.float32)
    black = float(rng.integers(0, 2) * 2 - 1)
    options = tf.io.TFRecordOptions(compression_type="ZLIB")
    with tf.io.TFRecordWriter(str(path), options) as writer:
        for row, pi in zip(planes, policy, strict=True):
            x = row if layout == "nchw" else row.transpose(1, 2, 0)
            features = {
                "x": [x.tobytes()],
                "pi": [pi.tobytes()],
                "outcome": [black],
                "q": [0.25],
                "n": [800],
            }
            writer.write(
                tf.train.Example(
                    features=tf.train.Features(
                        feature={k: feature(v) for k, v in features.items()}
                    )
                ).SerializeToString()
            )
    return {"planes": planes, "policy": policy, "black": np.full(num_rows, black)}


def feature(values: list):
    if isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def main() -> None:
    tf.disable_eager_execution()
    tf.disable_resource_variables()
    rng = np.random.default_rng(7)
    expected = {f"network_{k}": v for k, v in write_network(rng).items()}
    games = {
        "a": ("selfplay/000003/node-0/00/game-2.tfrecord.zz", 4),
        "b": ("selfplay/000003/node-1/00/game-1.tfrecord.zz", 3),
        "c": ("selfplay/000004/node-0/00/game-1.tfrecord.zz", 0),
        "d": ("selfplay/000004/node-0/00/game-2.tfrecord.zz", 2),
    }
    for key, (name, num_rows) in games.items():
        for part, array in write_game(rng, name, num_rows).items():
            expected[f"game_{key}_{part}"] = array
    last = "nhwc/000009/game.tfrecord.zz"
    for part, array in write_game(rng, last, 3, layout="nhwc").items():
        expected[f"game_last_{part}"] = array
    np.savez_compressed(FOLDER / "expected.npz", **expected)


if __name__ == "__main__":
    main()
