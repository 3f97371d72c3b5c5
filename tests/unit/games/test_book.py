"""Opening books: valid books, and the error for a damaged one."""

import hashlib
import json

import pytest

from tengen import games
from tengen.errors import RunError, UsageError
from tengen.games import Book, openings_text, read_book
from tests.refusals import refused

OPENINGS = [{"moves": [3]}, {"moves": [3, 3], "value_to_play": 0.1}, {"moves": []}]


def write(path, **changes):
    content = {"schema": 1, "task": "connect4", "openings": OPENINGS, **changes}
    path.write_text(json.dumps(content))
    return path


def test_what_was_written_is_read(tmp_path):
    path = write(tmp_path / "book.json", made_by={"anything": [1]})
    book = read_book(path, games.make("connect4"))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    assert book == Book(task="connect4", openings=((3,), (3, 3), ()), digest=digest)
    assert openings_text(0, None) == "the empty board"
    assert openings_text(1, None) == "1 random ply"
    assert openings_text(0, book) == f"book {digest}, 3 openings"
    assert openings_text(2, book) == f"book {digest}, 3 openings, then 2 random plies"


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"schema": "1"}, "it has no schema number"),
        ({"openings": []}, "it must have 1 to 65536 openings"),
        ({"openings": {}}, "it must have 1 to 65536 openings"),
        ({"openings": [[3]]}, "opening 0 is not legal in connect4"),
        ({"openings": [{"moves": [3]}, {"moves": [7]}]}, "opening 1 is not legal"),
        ({"openings": [{"moves": [-1]}]}, "opening 0 is not legal"),
        ({"openings": [{"moves": [True]}]}, "opening 0 is not legal"),
        ({"openings": [{"moves": ["3"]}]}, "opening 0 is not legal"),
        ({"openings": [{"moves": [1e30]}]}, "opening 0 is not legal"),
        ({"openings": [{"moves": [10**30]}]}, "opening 0 is not legal"),
        ({"openings": [{"moves": [3] * 7}]}, "opening 0 is not legal"),
        ({"openings": [{"moves": [0, 1] * 50}]}, "opening 0 is not legal"),
        # Four in a column, so the game has ended.
        ({"openings": [{"moves": [0, 1, 0, 1, 0, 1, 0]}]}, "opening 0 is not legal"),
        ({"openings": [{"moves": [3]}, {"moves": [3]}]}, "it has an opening twice"),
    ],
)
def test_a_damaged_book_is_refused_in_one_line(tmp_path, changes, what):
    path = write(tmp_path / "book.json", **changes)
    with pytest.raises(UsageError) as error:
        read_book(path, games.make("connect4"))
    assert str(error.value).startswith(f"book ({path}) is damaged, {what}")
    assert str(error.value).endswith("; make one with tengen book")
    assert "\n" not in str(error.value)


def test_other_files_are_refused(tmp_path):
    game = games.make("connect4")
    with refused(UsageError, "book (", "absent)"):
        read_book(tmp_path / "absent", game)
    with refused(RunError, f"book ({tmp_path})"):
        read_book(tmp_path, game, error=RunError)
    path = tmp_path / "book.json"
    for text in ("no json", "[" * 100_000, "[1]"):
        path.write_text(text)
        with refused(UsageError, f"book ({path}) is damaged"):
            read_book(path, game)
    with refused(UsageError, "newer"):
        read_book(write(path, schema=2), game)
    with refused(UsageError, '"go/9"', "connect4"):
        read_book(write(path, task="go/9"), game)
    with path.open("ab") as file:
        file.truncate(1 << 30)
    with refused(UsageError, str(path), "MiB"):
        read_book(path, game)
