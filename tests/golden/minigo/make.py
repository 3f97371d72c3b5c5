#!/usr/bin/env python3
"""Writes the files of this folder with TensorFlow; needs tensorflow-cpu.

::

    pip install tensorflow-cpu==2.21.0 tf-keras==2.21.0
    python tests/golden/minigo/make.py

The tests read the files without TensorFlow. The files are for 5 x 5 boards: a briefly
trained network of two blocks and eight channels, as a checkpoint and as a frozen graph,
the network's outputs for some positions, and training examples of games.

The network is ``dual_net.py`` of MLPerf Training v2.1 (minigo), with the same
``tf.layers`` in the same order. TensorFlow chooses the names of the layers, computes
the batch norms, and saves and freezes the network; this script names no layer. Tensors
are channels-first (NCHW) as in MLPerf; on CPUs TensorFlow needs oneDNN for that layout.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
# Only Keras 2 has tf.layers.
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow.compat.v1 as tf

FOLDER = Path(__file__).parent
SIDE, NUM_BLOCKS, NUM_CHANNELS, FC_WIDTH = 5, 2, 8, 6
NUM_CELLS = SIDE * SIDE
NUM_ROWS = 6
LAST_STEP = 12345
# With momentum 0.95, the norms' initial statistics keep a weight of 13 % at the end.
NUM_STEPS = 40
NUM_TRAINED_ROWS = 32


def network(planes, is_training: bool):
    """Returns the action logits, the action probabilities and Black's value.

    Args:
        planes: ``[B, 13, 5, 5]``.
        is_training: Whether norms use batch statistics and update moving averages.
    """

    def conv_norm(x, num_outputs: int, side: int, is_scaled: bool):
        y = tf.layers.conv2d(
            x,
            num_outputs,
            side,
            padding="same",
            data_format="channels_first",
            use_bias=False,
        )
        return tf.layers.batch_normalization(
            y,
            axis=1,
            momentum=0.95,
            epsilon=1e-5,
            center=is_scaled,
            scale=is_scaled,
            fused=True,
            training=is_training,
        )

    x = tf.nn.relu(conv_norm(planes, NUM_CHANNELS, 3, is_scaled=True))
    for _ in range(NUM_BLOCKS):
        y = tf.nn.relu(conv_norm(x, NUM_CHANNELS, 3, is_scaled=True))
        x = tf.nn.relu(x + conv_norm(y, NUM_CHANNELS, 3, is_scaled=True))

    def head(num_outputs: int):
        y = tf.nn.relu(conv_norm(x, num_outputs, 1, is_scaled=False))
        return tf.reshape(y, (-1, num_outputs * NUM_CELLS))

    logits = tf.layers.dense(head(2), NUM_CELLS + 1)
    policy = tf.nn.softmax(logits, name="policy_output")
    hidden = tf.nn.relu(tf.layers.dense(head(1), FC_WIDTH))
    value = tf.reshape(tf.layers.dense(hidden, 1), (-1,))
    return logits, policy, tf.tanh(value, name="value_output")


def positions(rng: np.random.Generator, num_rows: int) -> np.ndarray:
    """Returns random planes ``[R, 13, 5, 5]`` without two stones on one point."""
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


def train_network(prefix: str) -> None:
    """Trains a network on random targets and writes its checkpoint."""
    rng = np.random.default_rng(8)
    planes = positions(rng, NUM_TRAINED_ROWS)
    wanted = rng.dirichlet(np.full(NUM_CELLS + 1, 0.1), NUM_TRAINED_ROWS)
    black = rng.integers(0, 2, NUM_TRAINED_ROWS) * 2.0 - 1.0
    with tf.Graph().as_default():
        # Keras samples the seeds of the initial weights from this generator.
        random.seed(7)
        logits, _, value = network(tf.constant(planes, tf.float32), is_training=True)
        loss = tf.reduce_mean(
            tf.nn.softmax_cross_entropy_with_logits_v2(wanted, logits)
        ) + tf.reduce_mean(tf.square(value - black))
        step = tf.train.get_or_create_global_step()
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.MomentumOptimizer(0.02, 0.9).minimize(loss, step)
        with tf.Session(config=one_thread()) as session:
            session.run(tf.global_variables_initializer())
            session.run(tf.assign(step, LAST_STEP - NUM_STEPS))
            for _ in range(NUM_STEPS):
                session.run(train)
            tf.train.Saver().save(
                session, prefix, write_meta_graph=False, write_state=False
            )


def freeze_network(prefix: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Writes the frozen graph of a checkpoint; returns planes and network outputs."""
    planes = positions(rng, NUM_ROWS)
    with tf.Graph().as_default(), tf.Session(config=one_thread()) as session:
        given = tf.placeholder(tf.float32, (None, 13, SIDE, SIDE), "pos_tensor")
        logits, policy, value = network(given, is_training=False)
        tf.train.Saver().restore(session, prefix)
        answers = session.run([logits, value], {given: planes})
        frozen = tf.graph_util.convert_variables_to_constants(
            session, session.graph_def, [policy.op.name, value.op.name]
        )
    (FOLDER / "frozen.pb").write_bytes(frozen.SerializeToString(deterministic=True))
    return {"planes": planes, "policy_logits": answers[0], "value": answers[1]}


def one_thread() -> tf.ConfigProto:
    """Returns a single-thread config, so that sums are deterministic."""
    return tf.ConfigProto(
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=1
    )


def write_game(
    rng: np.random.Generator, name: str, num_rows: int, layout: str = "nchw"
) -> dict[str, np.ndarray]:
    """Writes the training examples of a random game, and returns their contents."""
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
                ).SerializeToString(deterministic=True)
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
    prefix = str(FOLDER / "model.ckpt")
    train_network(prefix)
    expected = {f"network_{k}": v for k, v in freeze_network(prefix, rng).items()}
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
