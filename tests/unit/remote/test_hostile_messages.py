"""What a peer sends is data: no name of it is a path, and nothing of it is believed."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any

import pytest

from tengen.errors import RunError, TengenError, UsageError
from tengen.remote.copies import CopiedFiles, Prefix
from tengen.remote.messages import PIECE_BYTES, RunClient, encoded
from tengen.run import find_files
from tests.refusals import refused

MIRROR = "a" * 32
PIECE = encoded(b"x")


@pytest.fixture
def ask(host):
    """Asks as a mirror that has a place, and may say anything."""
    client = host.client()
    place = RunClient(client, MIRROR).join("selfplay", None, None)

    def ask(what: str, **fields: Any) -> Any:
        who = {"mirror": MIRROR, "events": place.events}
        return client.ask({"ask": what, **who, **fields})

    return ask


def files_of(run) -> set[str]:
    return {str(path) for path in Path(run.path).rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("what", "fields"),
    [
        ("look", {"mirror": "../../etc"}),
        ("look", {"mirror": "b" * 32}),
        ("look", {"events": 77}),
        ("join", {"role": "learn", "index": 0, "process": "1", "tengen": "0.1.0"}),
        ("join", {"role": "actor", "index": -1, "process": "1", "tengen": "0.1.0"}),
        ("claim", {"num_wanted": 10**9}),
        ("claim", {"num_wanted": "4"}),
        ("claim", {"num_wanted": True}),
        ("append", {"kind": "../x", "offset": 0, "crc": 0, "data": PIECE}),
        ("append", {"kind": "events", "offset": -1, "crc": 0, "data": PIECE}),
        ("append", {"kind": "events", "offset": 0, "crc": 0, "data": "no base64!"}),
        (
            "append",
            {
                "kind": "events",
                "offset": 0,
                "crc": 0,
                "data": encoded(bytes(PIECE_BYTES + 3)),
            },
        ),
        # Never claimed.
        (
            "append",
            {
                "kind": "journal",
                "generation": 77,
                "incarnation": 1,
                "offset": 0,
                "crc": 0,
                "data": PIECE,
            },
        ),
        (
            "append",
            {
                "kind": "journal",
                "generation": 1,
                "incarnation": 10**9,
                "offset": 0,
                "crc": 0,
                "data": PIECE,
            },
        ),
        (
            "append",
            {
                "kind": "segment",
                "generation": 77,
                "incarnation": 1,
                "size": 1,
                "whole_crc": 0,
                "offset": 0,
                "crc": 0,
                "data": PIECE,
            },
        ),
        ("look", {"totals": [3, 1]}),
        ("model", {"number": "../../000001"}),
        ("piece", {"number": 0, "name": "../run.json", "offset": 0}),
        ("piece", {"number": 0, "name": "/etc/passwd", "offset": 0}),
        ("nothing", {}),
    ],
)
def test_it_is_refused_and_changes_nothing(host, ask, what, fields):
    before = files_of(host.run)
    with pytest.raises(TengenError):
        ask(what, **fields)
    assert files_of(host.run) == before


def segment_message(generation: int, data: bytes, **fields: Any) -> dict[str, Any]:
    return {
        "kind": "segment",
        "incarnation": 1,
        "generation": generation,
        "size": len(data),
        "whole_crc": zlib.crc32(data),
        "offset": 0,
        "crc": 0,
        "data": encoded(data),
        **fields,
    }


def test_what_is_no_segment_is_not_published(host, ask):
    (generation,) = ask("claim", num_wanted=1)["numbers"]
    for data in (b"", b"PK\x03\x04 no archive", os.urandom(2000)):
        with refused(UsageError, "segment (generation"):
            ask("append", **segment_message(generation, data))
    for fields in ({"whole_crc": 7}, {"size": 3}):
        with refused(RunError, "segment ("):
            ask("append", **segment_message(generation, b"some bytes", **fields))
    # Damaged on the way: what follows it has another beginning.
    first = segment_message(generation, b"some", size=9, whole_crc=7)
    assert ask("append", **first) == {"held": 4}
    with refused(RunError, "segment ("):
        ask("append", **{**first, "offset": 4, "crc": 1})
    assert find_files(host.run.experience, "*/*/*.npz") == []
    assert find_files(host.run.experience, "*/*/*.part") == []
    assert len(find_files(host.run.experience, "*/*/*.journal")) == 1


def test_the_name_of_a_copy_is_durable_before_its_bytes_count(tmp_path, monkeypatch):
    path, copies = tmp_path / "writer" / "1" / "copy", CopiedFiles()
    path.parent.mkdir(parents=True)
    synced = []

    def sync(folder):
        synced.append(folder)
        if len(synced) == 1:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("tengen.remote.copies.sync_directory", sync)
    with refused(RunError):
        copies.append(path, Prefix(), b"one")
    synced[:] = [path]
    # The piece is there, and is sent again.
    assert copies.append(path, Prefix(), b"one") == 3
    assert synced[1:] == [path.parent, path.parent.parent]
    assert copies.append(path, Prefix().plus(b"one"), b"two") == 6
    assert len(synced) == 3


def test_a_copy_takes_each_byte_once(tmp_path):
    path, copies = tmp_path / "copy", CopiedFiles()
    first, second = b"one, ", b"two"
    assert copies.append(path, Prefix(), first) == 5
    # Again, from too far on, and after a restart: it says where it is.
    assert copies.append(path, Prefix(), first) == 5
    assert copies.append(path, Prefix(9), second) == 5
    copies = CopiedFiles()
    assert copies.append(path, Prefix(), b"") == 5
    with refused(UsageError, "copy ("):
        copies.append(path, Prefix().plus(b"ONE, "), second)
    whole = Prefix().plus(first + second)
    assert copies.append(path, Prefix().plus(first), second) == whole.size
    assert path.read_bytes() == first + second
    # Somebody changed it behind the service.
    path.write_bytes(b"one")
    assert copies.append(path, whole, b"x") == 3
