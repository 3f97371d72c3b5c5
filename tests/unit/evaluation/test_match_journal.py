import pytest

from tengen import games
from tengen.errors import RunError, TengenError, UsageError
from tengen.evaluation import MatchJournal, MctsPlayer, RandomPlayer, play_match
from tengen.experience.games.journal import OpenSegment, read_journal

KEY = {"candidate": 3, "seed": 7}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "eval" / "gate-000003"


@pytest.fixture(scope="module")
def played():
    game = games.make("tictactoe")
    return play_match(game, MctsPlayer(4), RandomPlayer(), num_games=6).games


def keep(folder, *parts, key=KEY):
    """Keeps games as one process does, and returns what it found there."""
    journal = MatchJournal(folder, key)
    for part in parts:
        journal.keep(part)
    journal.close()
    return journal.played


def test_games_come_back_in_order_from_every_process(folder, played):
    assert keep(folder, played[4:], played[:1]) == ()
    assert keep(folder, played[2:3]) == (played[0], *played[4:])
    assert keep(folder) == (played[0], played[2], *played[4:])
    MatchJournal.remove(folder)
    assert keep(folder) == ()
    MatchJournal.remove(folder.parent / "absent")


def test_games_are_durable_once_they_are_kept(folder, played):
    journal = MatchJournal(folder, KEY)
    journal.keep(played[:2])
    assert len(read_journal(folder / "1.journal").frames) == 2
    journal.close()


def test_another_match_begins_anew(folder, played):
    keep(folder, played)
    assert keep(folder, played[:1], key={**KEY, "seed": 8}) == ()
    assert keep(folder, key={**KEY, "seed": 8}) == played[:1]


def test_what_a_kill_cut_short_is_played_again(folder, played):
    keep(folder, played)
    path = folder / "1.journal"
    path.write_bytes(path.read_bytes()[:-3])
    journal = MatchJournal(folder, KEY)
    assert journal.played == played[:-1]
    assert journal.gaps == []
    journal.close()


def test_damage_is_told_and_loses_one_game(folder, played):
    keep(folder, played)
    path = folder / "1.journal"
    data = bytearray(path.read_bytes())
    frame = data.index(b'"index": 2')
    data[frame] ^= 1
    path.write_bytes(data)
    journal = MatchJournal(folder, KEY)
    assert journal.played == (*played[:2], *played[3:])
    (gap,) = journal.gaps
    assert "1.journal) is damaged at byte" in str(gap)
    journal.close()


def test_a_file_that_is_no_journal_is_refused_in_one_line(folder, played):
    keep(folder, played)
    path = folder / "1.journal"
    path.write_bytes(b"x" * 100)
    with pytest.raises(RunError, match=r"; remove it, its games are played again$"):
        MatchJournal(folder, KEY)


def test_a_newer_journal_is_refused(folder, played):
    keep(folder, played)
    path = folder / "1.journal"
    data = bytearray(path.read_bytes())
    data[8] += 1
    path.write_bytes(data)
    with pytest.raises(UsageError, match="schema"):
        MatchJournal(folder, KEY)


@pytest.mark.parametrize(
    "frame", [b"\xff", b"{", b"[" * 100_000, b"7", b"[]", b"{}", b'{"index": "0"}']
)
def test_what_is_no_game_is_one_line(folder, frame):
    folder.mkdir(parents=True)
    segment = OpenSegment(folder / "1.journal", KEY)
    segment.append(frame)
    segment.close()
    with pytest.raises(TengenError, match=r"1\.journal") as caught:
        MatchJournal(folder, KEY)
    assert "\n" not in str(caught.value)
