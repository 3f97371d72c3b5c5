"""The script that downloads published networks, without internet access."""

import hashlib

import pytest
from scripts import fetch_katago


@pytest.fixture
def network(tmp_path, monkeypatch):
    source = tmp_path / "net.bin.gz"
    source.write_bytes(b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()
    found = fetch_katago.Network(source.as_uri(), digest)
    monkeypatch.setitem(fetch_katago.NETWORKS, "b6c96", found)
    return found


def test_a_file_is_fetched_once_and_checked(network, tmp_path, capsys):
    folder = tmp_path / "nets"
    assert fetch_katago.main([str(folder)]) == 0
    assert (folder / "net.bin.gz").read_bytes() == b"weights"
    assert [path.name for path in folder.iterdir()] == ["net.bin.gz"]
    (tmp_path / "net.bin.gz").unlink()
    assert fetch_katago.main([str(folder), "b6c96"]) == 0
    assert "tengen play katago:" in capsys.readouterr().out


def test_another_file_is_not_kept(network, tmp_path, capsys):
    (tmp_path / "net.bin.gz").write_bytes(b"others")
    folder = tmp_path / "nets"
    assert fetch_katago.main([str(folder)]) == 1
    assert list(folder.iterdir()) == []
    assert "and not " + network.sha256 in capsys.readouterr().err


def test_bad_usage_is_one_line(capsys):
    for words in ([], ["folder", "b99"]):
        with pytest.raises(SystemExit) as ended:
            fetch_katago.main(words)
        assert ended.value.code == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert fetch_katago.main(["--list"]) == 0
