"""The script that downloads the published files, against a local server."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from scripts import fetch_minigo

from tests.unit.conftest import remount

CONTENTS = {name: name.encode() * 500 for name in fetch_minigo.NAMES}
LARGE = "checkpoint.tar.gz"


class Server(ThreadingHTTPServer):
    """A file server that can ignore ranges, lack a file, or cut off a response."""

    knows_ranges = True
    lacks = ""
    cuts_at: int | None = None

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str]] = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/pub"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        name, wanted = self.path.removeprefix("/pub/"), self.headers["Range"]
        self.server.asked.append((name, wanted))
        if name == self.server.lacks:
            self.send_error(404)
            return
        content = CONTENTS[name]
        first = int(wanted.removeprefix("bytes=").removesuffix("-"))
        if self.server.knows_ranges and first >= len(content):
            self.send_error(416)
            return
        if self.server.knows_ranges:
            rest = content[first:]
            self.send_response(206)
            told = f"bytes {first}-{len(content) - 1}/{len(content)}"
            self.send_header("Content-Range", told)
        else:
            rest = content
            self.send_response(200)
        if self.server.cuts_at is not None and name == LARGE:
            self.send_header("Connection", "close")
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            self.wfile.write(rest[: self.server.cuts_at])
            return
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def fetched(server, folder):
    return fetch_minigo.main([str(folder), "--from", server.url + "/"])


def check_all(folder):
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == CONTENTS


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_all_files_come_once(server, tmp_path, capsys, knows_ranges):
    server.knows_ranges = knows_ranges
    folder = tmp_path / "new" / "minigo"
    assert fetched(server, folder) == 0
    check_all(folder)
    assert f"import-minigo --checkpoint {folder}/target " in capsys.readouterr().out
    assert [name for name, _ in server.asked] == list(fetch_minigo.NAMES)
    assert fetched(server, folder) == 0
    assert len(server.asked) == len(fetch_minigo.NAMES)


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_file_that_was_cut_off_goes_on(server, tmp_path, capsys, knows_ranges):
    server.knows_ranges, server.cuts_at = knows_ranges, 1000
    assert fetched(server, tmp_path) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"file ({tmp_path / LARGE}) is missing, " in err
    assert not (tmp_path / LARGE).exists()
    server.cuts_at = None
    assert fetched(server, tmp_path) == 0
    check_all(tmp_path)
    assert server.asked[-1] == (LARGE, "bytes=999-")


def test_what_is_longer_than_the_file_begins_anew(server, tmp_path, capsys):
    (tmp_path / f"{LARGE}.part").write_bytes(bytes(len(CONTENTS[LARGE]) + 5))
    assert fetched(server, tmp_path) == 1
    assert "begins anew" in capsys.readouterr().err
    assert fetched(server, tmp_path) == 0
    check_all(tmp_path)
    (tmp_path / LARGE).unlink()
    (tmp_path / f"{LARGE}.part").write_bytes(bytes(len(CONTENTS[LARGE]) + 5))
    server.knows_ranges = False
    assert fetched(server, tmp_path) == 0
    check_all(tmp_path)


def test_what_is_missing_is_a_line_each(server, tmp_path, capsys):
    server.lacks = "target.meta"
    assert fetched(server, tmp_path) == 1
    assert (
        "target.meta) is missing, the server answers 404 at" in capsys.readouterr().err
    )
    folder = tmp_path / "offline"
    # No process listens on port 9.
    words = [str(folder), "--from", "http://127.0.0.1:9/pub"]
    assert fetch_minigo.main(words) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(fetch_minigo.NAMES)
    for line, name in zip(lines, fetch_minigo.NAMES, strict=True):
        assert line.startswith(f"fetch_minigo: file ({folder / name}) is missing, ")
        assert "refused" in line
    assert not list(folder.iterdir())


def test_a_disk_that_refuses_is_not_the_networks_fault(server, tmp_path, capsys):
    # A folder at the path of the partial file makes writing fail.
    part = tmp_path / f"{LARGE}.part"
    part.mkdir()
    assert fetched(server, tmp_path) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"fetch_minigo: file ({tmp_path / LARGE}) is missing, {part} cannot be "
        f"written, Is a directory; mend that and run this again, it goes on from there"
    )
    part.rmdir()
    assert fetched(server, tmp_path) == 0
    check_all(tmp_path)


def test_bad_usage_is_one_line(capsys):
    with pytest.raises(SystemExit) as caught:
        fetch_minigo.main([])
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "url",
    ["nonsense", "ftp://a/b", "http:/a/b", "http://:80", "http://a:b", "http://["],
)
def test_a_source_that_is_no_url_is_one_line(url, tmp_path, capsys):
    folder = tmp_path / "folder"
    assert fetch_minigo.main([str(folder), "--from", url]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"fetch_minigo: --from ({url}) must be a URL, http or https")
    assert not folder.exists()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path, capsys):
    file = tmp_path / "file"
    file.touch()
    for folder in ("/proc/nope", str(file), str(file / "below")):
        assert fetch_minigo.main([folder]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"fetch_minigo: folder ({folder}) cannot be written, ")


def test_a_folder_that_cannot_be_written_is_one_line(server, small_disk, capsys):
    whole, asked = small_disk / "whole", small_disk / "asked"
    assert fetched(server, whole) == 0
    capsys.readouterr()
    remount(small_disk)
    server.asked.clear()
    assert fetched(server, asked) == 2
    err = capsys.readouterr().err
    assert err == (
        f"fetch_minigo: folder ({asked}) cannot be written, Read-only file system; "
        "choose another\n"
    )
    assert server.asked == []
    # If all files are present, nothing is written, so a read-only folder is fine.
    assert fetched(server, whole) == 0
