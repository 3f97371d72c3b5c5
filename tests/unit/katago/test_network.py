"""KataGo's network files: outputs equal to KataGo's own, and invalid files."""

import gzip
import re

import numpy as np
import openvino
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from katago_files import tiny_network, write_network
from katago_golden import FOLDER, NETWORKS, golden_games

from tengen.errors import UsageError
from tengen.katago.network import read_network
from tengen.models import ModelExporter
from tengen.tensors import BoardSpec
from tests.refusals import refused

TOLERANCE = 1e-4
GAMES = list(golden_games())
SMALL = bytes(tiny_network(15, blocks=(["gpool"],), channels=3).data)


def signature_of(network, height, width):
    board = BoardSpec(
        num_planes=29,
        height=height,
        width=width,
        num_actions=height * width + 1,
        policy_layout="cells_and_pass",
        max_score=height * width + 20,
    )
    return network.config.signature(board.signature)


def built(network, height, width):
    net = network.config.build(signature_of(network, height, width))
    net.load_state_dict(
        {name: torch.from_numpy(np.array(x)) for name, x in network.tensors.items()}
    )
    return net.eval()


def compiled(network):
    signature = signature_of(network, 9, 9)
    graph = ModelExporter().export(signature, network.config, network.tensors)
    core = openvino.Core()
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    return core.compile_model(core.read_model(graph), "CPU", exact)


def planes_of(golden):
    height, width = golden.size
    constants = golden.constants[:, :, None, None]
    shape = (len(golden.plies), 11, height, width)
    return np.concatenate([golden.points, np.broadcast_to(constants, shape)], axis=1)


def check_answers(golden, name, policy, value, score):
    """Compares a network's outputs with KataGo's own."""
    wanted = golden.answers[name]
    legal = wanted.policy >= 0
    logits = np.where(legal, policy, -np.inf)
    share = np.exp(logits - logits.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    expected = np.where(legal, wanted.policy, 0)
    np.testing.assert_allclose(share, expected, atol=TOLERANCE)
    outcome = wanted.outcome
    np.testing.assert_allclose(value, outcome[:, 0] - outcome[:, 1], atol=TOLERANCE)
    deviation = np.sqrt(np.maximum(wanted.square - wanted.score**2, 0))
    # In points; the network's unit is 20 points.
    np.testing.assert_allclose(score[:, 0], wanted.score, atol=20 * TOLERANCE)
    np.testing.assert_allclose(score[:, 1], deviation, atol=20 * TOLERANCE)


@pytest.mark.parametrize("name", NETWORKS)
def test_answers_are_katagos(name):
    network = read_network(FOLDER / f"{name}.bin.gz")
    assert (network.name, network.version) == (name, int(name.partition("-v")[2]))
    for golden in GAMES:
        net = built(network, *golden.size)
        planes = torch.from_numpy(planes_of(golden))
        with torch.inference_mode():
            answers, _ = net.answer({"planes": planes}, {})
            expected = net.expect(planes)
        policy, value, score = (
            answers[key].numpy() for key in ("policy", "value", "score")
        )
        check_answers(golden, name, policy, value, score)
        wanted = golden.answers[name]
        ownership = expected["ownership"].flatten(1).numpy()
        np.testing.assert_allclose(ownership, wanted.ownership, atol=TOLERANCE)
        lead = expected["lead"].numpy()
        np.testing.assert_allclose(lead, wanted.lead, atol=20 * TOLERANCE)


def test_the_graph_answers_the_same():
    """One OpenVINO graph serves all board sizes."""
    network = read_network(FOLDER / "tiny-v14.bin.gz")
    model = compiled(network)
    for golden in GAMES:
        found = model([planes_of(golden)])
        policy, value, score = (found[key] for key in ("policy", "value", "score"))
        check_answers(golden, "tiny-v14", policy, value, score)


def test_the_graph_has_every_activation(tmp_path):
    file = tiny_network(11, activation="ACTIVATION_SILU", blocks=("gpool",))
    network = read_network(write_network(tmp_path / "net.bin", file))
    planes = planes_of(GAMES[0])
    with torch.inference_mode():
        inputs = {"planes": torch.from_numpy(planes)}
        answers, _ = built(network, 9, 9).answer(inputs, {})
    found = compiled(network)([planes])
    for name, answer in answers.items():
        np.testing.assert_allclose(found[name], answer.numpy(), atol=TOLERANCE)


@pytest.mark.parametrize(
    ("version", "changes"),
    [
        (10, {"is_binary": False}),
        (11, {"activation": "ACTIVATION_SILU"}),
        (15, {"pass_activation": "ACTIVATION_IDENTITY"}),
        (16, {"blocks": ("gpool", ["ordinary", ["gpool"]])}),
    ],
)
def test_every_kind_of_file_is_read(tmp_path, version, changes):
    """A network is the same in text and binary, compressed or not."""
    found = []
    for is_binary, suffix in ((True, ".bin"), (False, ".txt"), (True, ".bin.gz")):
        file = tiny_network(version, **{**changes, "is_binary": is_binary})
        found.append(read_network(write_network(tmp_path / f"net{suffix}", file)))
    first = found[0]
    assert first.version == version
    built(first, 5, 5)
    for other in found[1:]:
        assert other.config == first.config
        for name, tensor in first.tensors.items():
            np.testing.assert_array_equal(other.tensors[name], tensor)


def refusal(tmp_path, data, name="net.bin"):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(UsageError) as refused:
        read_network(path)
    text = str(refused.value)
    assert "\n" not in text
    assert str(path) in text
    return text.replace(str(path), "FILE")


def changed(old, new, version=17):
    data = bytes(tiny_network(version).data)
    assert data.count(old.encode()) >= 1
    return data.replace(old.encode(), new.encode(), 1)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (changed("tiny-v17\n17\n", "tiny-v17\n7\n"), "it is of version 7"),
        (changed("tiny-v17\n17\n", "tiny-v17\n18\n"), "it is of version 18"),
        (
            changed("ordinary_block", "transformer_ffn_block"),
            "block0 is a transformer_ffn_block",
        ),
        (changed("30.0\n0\n", "30.0\n1\n"), "reads who plays"),
        (changed("30.0\n0\n0\n", "30.0\n0\n1\n"), "pass-alive areas differs"),
        (changed("30.0\n" + "0\n" * 8, "30.0\n" + "0\n" * 7 + "5\n"), "options"),
        (
            changed("4\n0\n0\n0\n0\n0\n0\nstem", "4\n1\n0\n0\n0\n0\n0\nstem"),
            "root mean",
        ),
        (changed("stem\n3\n3\n22\n8\n1\n1\n", "stem\n3\n3\n22\n8\n2\n2\n"), "dilated"),
        (changed("tip.act\nACTIVATION_RELU", "tip.act\nACTIVATION_MISH"), "relu and"),
        (changed("tip.act\nACTIVATION_RELU", "tip.act\nACTIVATION_TANH"), "TANH"),
    ],
)
def test_what_is_not_computed_is_refused_by_name(tmp_path, data, said):
    text = refusal(tmp_path, data)
    assert text.startswith("KataGo network (FILE) is not supported, ")
    assert re.search(said, text)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "ends before its name"),
        (changed("stem\n3\n3\n", "stem\n3\n5\n"), "3x5"),
        (changed("stem\n3\n3\n22\n", "stem\n3\n3\n23\n"), "23 channels, not 22"),
        (changed("stem\n3\n3\n22\n8\n", "stem\n3\n3\n22\n999999\n"), "999999"),
        (changed("trunk\n2\n", "trunk\n600\n"), "600 blocks"),
        (changed("stem\n", "s" * 300 + "\n"), "longer than"),
        (bytes(tiny_network(8).data) + b"more", "has data after"),
        (bytes(tiny_network(8).data)[:-9], "ends inside"),
        (
            bytes(tiny_network(8).data).replace(b"@BIN@", b"@BIM@", 1),
            "begin with @BIN@",
        ),
        (bytes(tiny_network(8, is_binary=False).data), "begin with @BIN@"),
    ],
)
def test_a_damaged_file_is_one_line(tmp_path, data, said):
    text = refusal(tmp_path, data)
    assert text.startswith("KataGo network (FILE) is damaged or not supported, ")
    assert said in text


def test_numbers_must_be_finite(tmp_path):
    data = bytearray(SMALL)
    at = data.index(b"@BIN@") + 5
    data[at : at + 4] = np.float32(np.nan).tobytes()
    assert "non-finite" in refusal(tmp_path, bytes(data))


def test_names_and_packing_are_checked(tmp_path):
    assert "must be a file .bin.gz" in refusal(tmp_path, SMALL, "net.onnx")
    assert "is damaged" in refusal(tmp_path, SMALL, "net.bin.gz")
    packed = gzip.compress(SMALL)
    assert "is damaged" in refusal(tmp_path, packed[:-30], "net.bin.gz")
    assert "is damaged" in refusal(tmp_path, packed[:-4] + b"oops", "net.bin.gz")
    with refused(UsageError, "none.bin.gz"):
        read_network(tmp_path / "none.bin.gz")


def test_a_file_that_unpacks_to_much_is_not_unpacked(tmp_path):
    """Data beyond the network's size is not decompressed."""
    bomb = gzip.compress(SMALL + b"x" + bytes(1 << 24), compresslevel=1)
    assert "has data after" in refusal(tmp_path, bomb, "bomb.bin.gz")
    spaces = gzip.compress(b" " * (1 << 20), compresslevel=1)
    assert "blanks in a row" in refusal(tmp_path, spaces, "spaces.bin.gz")


@settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    cut=st.integers(0, len(SMALL)),
    flips=st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255))),
)
def test_any_file_is_read_or_refused(tmp_path, cut, flips):
    data = bytearray(SMALL)
    for at, byte in flips:
        data[at] = byte
    path = tmp_path / "net.bin"
    path.write_bytes(data[:cut] if cut % 2 else data)
    try:
        read_network(path)
        text = ""
    except UsageError as refused:
        text = str(refused)
    assert "\n" not in text
