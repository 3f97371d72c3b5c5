"""SGF in any charset: no byte of a text is read as syntax, so no move is lost."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tengen.errors import UsageError
from tengen.games.sgf import read_sgf
from tests.refusals import refused

# Names in which the second byte of a character is ] or a backslash, by charset.
NAMES = {
    "cp932": ("\u5165", "\u8868", "\u30bd\u30f3", "\u80fd\u529b \u521d\u6bb5"),
    "gb18030": ("\u8046\u536b\u5e73", "\u603d\u4e96", "\u603e", "\u7e7a\u7e7b"),
    "big5hkscs": ("\u8a31\u529f\u84cb", "\u529f", "\u84cb", "\u9673\u8a31"),
    "cp949": ("\uc774\ucc3d\ud638", "\ub618\ubc29\uac01\ud558", "\uc870\ud6c8\ud604"),
    "euc_jp": ("\u3042\u3044", "\u30bd\u30f3", "\u8868"),
}
CODED = [(charset, name) for charset, names in NAMES.items() for name in names]
FORM = "(;{ca}GM[1]FF[3]SZ[9]PB[{}]PW[{}]C[{}];B[ee]C[{}];W[cc];B[gg])"
MOVES = (40, 20, 60)


def test_a_shift_jis_name_without_ca_swallows_no_move():
    text = b"(;GM[1]FF[3]SZ[9]PB[\x93\xfd]PW[\x95\x5c];B[ee];W[cc];B[gg])"
    assert read_sgf(text).moves == MOVES
    # With the invalid byte replaced, the name is valid Shift-JIS.
    record = read_sgf(text.replace(b"\xfd", b"\xfc"))
    assert record.moves == MOVES
    assert (record.black, record.white) == ("\u5165", "\u8868")


@pytest.mark.parametrize(("charset", "name"), CODED)
@pytest.mark.parametrize("ca", ["", "CA[UTF-8]", "CA[nonsense]"])
def test_a_charset_that_nobody_names(charset, name, ca):
    text = FORM.format(name, "x", name, f"({name})", ca=ca).encode(charset)
    record = read_sgf(text)
    assert record.moves == MOVES
    assert record.white == "x"


@pytest.mark.parametrize(("charset", "name"), CODED)
def test_a_charset_that_is_named_too_narrowly(charset, name):
    narrow = {"cp932": "Shift_JIS", "gb18030": "GB2312", "big5hkscs": "Big5"}
    said = narrow.get(charset, {"cp949": "EUC-KR"}.get(charset, charset))
    text = FORM.format(name, name, name, f"({name})", ca=f"CA[{said}]").encode(charset)
    record = read_sgf(text)
    assert record.moves == MOVES
    assert record.black == record.white == record.comment == name
    assert record.comments == (f"({name})", "", "")


@pytest.mark.parametrize(
    ("charset", "name"),
    [
        ("cp932", "\u8d99\u6cbb\u52f2\u3055\u3093"),
        ("gb18030", "\u53e4\u529b\u4e5d\u6bb5\u8046\u536b\u5e73"),
        ("cp949", "\uc774\ucc3d\ud638\uc870\ud6c8\ud604"),
        ("big5hkscs", "\u5f35\u6829\u8a31\u529f"),
        ("euc_jp", "\u3042\u306e\u4eba\u3068\u5bfe\u5c40\u3059\u308b"),
    ],
)
def test_names_without_a_charset_are_those_of_the_likeliest(charset, name):
    assert read_sgf(f"(;SZ[9]PB[{name}])".encode(charset)).black == name


# UTF-32 without a byte-order mark does not occur.
WIDE = ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-8"]


@pytest.mark.parametrize(
    ("charset", "mark", "ca"),
    [
        *((charset, "\ufeff", "") for charset in WIDE),
        *((charset, "", "") for charset in WIDE if "32" not in charset),
        ("iso2022_jp", "", "CA[ISO-2022-JP]"),
    ],
)
def test_unicode_of_any_width_is_read(charset, mark, ca):
    text = mark + FORM.format("\u8868\u6c0f", "y", "c", "", ca=ca)
    record = read_sgf(text.encode(charset))
    assert record.moves == MOVES
    assert (record.black, record.white) == ("\u8868\u6c0f", "y")


@pytest.mark.parametrize("name", ["Andr\u00e9", "\u00e9", "R\u00e9my \u00d8", "\u20ac"])
@pytest.mark.parametrize("ca", ["", "CA[ISO-8859-1]", "CA[windows-1252]", "CA[UTF-8]"])
def test_latin_names_end_where_they_end(name, ca):
    text = FORM.format(name, name, f"tr\u00e8s ({name})", name, ca=ca)
    record = read_sgf(text.encode("cp1252"))
    assert record.moves == MOVES
    assert record.white == name
    # Text after the game, such as the rest of an email, is ignored.
    assert read_sgf(f"(;SZ[9];B[aa]C[{name}])\n-- \nbye".encode("cp1252")).moves == (0,)


@pytest.mark.parametrize(("charset", "name"), CODED)
def test_a_name_that_a_server_has_cut_swallows_no_move(charset, name):
    whole = name.encode(charset)
    for length in range(1, len(whole)):
        for ca in ("", f"CA[{charset}]"):
            form = FORM.format("@", "x", "c", "", ca=ca).encode()
            try:
                record = read_sgf(form.replace(b"@", whole[:length]))
            except UsageError:
                # The first half of the cut character is a backslash before the bracket.
                assert whole[:length].endswith(b"\\")
                continue
            assert record.moves == MOVES
            assert record.white == "x"


def test_what_may_be_either_is_refused_and_not_guessed():
    text = b"(;SZ[9]PB[\xe9] junk;B[ee];W[cc])"
    with pytest.raises(UsageError) as caught:
        read_sgf(text)
    assert "must match the charset in CA" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        # A comment cut inside a character, whose first byte and "]" form another one.
        b"(;GM[1]SZ[9]PW[\xb4\\]C[a\xc1];B[de]C[\xd6c\xe7\\\xea\\\\]\x9a\xad];W[hi])",
        b"(;CA[GBK]GM[1]PB[\xc1]SZ[9];B[de];W[hi])",
        b"(;CA[GBK]GM[1]SZ[9]C[\xc1]B[de]C[\xc1\xa2];W[hi])",
        b"(;CA[GBK]GM[1]SZ[9]PB[\xc1]AB[cc][gg];W[hi])",
    ],
)
def test_half_a_character_hides_no_move_stone_or_size(text):
    try:
        record = read_sgf(text)
    except UsageError:
        return
    assert record.game == "go/9"
    assert len(record.moves) + len(record.black_stones) == 2 + (b"AB" in text)


@pytest.mark.parametrize("ca", ["", "CA[ISO-8859-1]", "CA[UTF-8]"])
@pytest.mark.parametrize(
    "text", ["F\u00fcr B[dd", "\u00e9 AB[cc", "\u00fcB[dd", "\u00df KM[6"]
)
def test_a_move_in_a_text_without_a_bracket_that_may_be_lost_is_a_text(text, ca):
    for charset in ("cp1252", "utf-8"):
        record = read_sgf(f"(;{ca}SZ[9];B[ee]C[{text}];W[cc])".encode(charset))
        assert record.moves == (40, 20)
        assert record.comments == (text, "")


@pytest.mark.parametrize(
    "ca",
    [
        *("gb2312", "GBK", "Big5", "Shift_JIS", "EUC-KR", "EUC-JP", "ISO-2022-JP"),
        *("ISO-8859-1", "windows-1252", "windows-1251", "KOI8-R"),
    ],
)
@pytest.mark.parametrize(
    "name",
    [
        *("\u53e4\u529b", "\u67ef", "\uc774\ucc3d\ud638", "\u3042", "\U0001f600"),
        *("\u041e\u043b\u044f", "Andr\u00e9s", "M\u00fcller", "\u00d6z"),
    ],
)
def test_what_is_utf_8_is_read_so_whatever_it_names(name, ca):
    text = f"(;GM[1]CA[{ca}]SZ[9]PB[{name}];B[ee])".encode()
    for data in (text, text[:-1], text[:-1] + b"C[\xe5\x8f"):
        record = read_sgf(data)
        assert record.moves == (40,)
        assert record.black == name


@pytest.mark.parametrize(
    ("ca", "name"),
    [
        ("gb2312", "\u4e00"),
        ("GBK", "\u53e4\u529b"),
        ("EUC-KR", "\uc774"),
        ("EUC-JP", "\u6751"),
        ("Shift_JIS", "\uff83\uff71"),
        ("Big5", "\u529f"),
        ("windows-1251", "\u0416"),
        ("KOI8-R", "\u0416"),
    ],
)
def test_a_short_name_that_is_utf_8_by_chance_is_in_the_charset_it_names(ca, name):
    text = f"(;CA[{ca}]SZ[9]PB[{name}];B[ee])".encode(ca)
    assert read_sgf(text).black == name


def test_a_charset_that_does_not_decode_the_texts_is_passed_over():
    names = "\u8d99\u6cbb\u52f2\u3055\u3093", "\u5c0f\u6797\u3055\u3093"
    for ca in ("EUC-JP", "Big5", "windows-1253"):
        text = "(;CA[{}]SZ[9]PB[{}]PW[{}];B[ee])".format(ca, *names).encode("cp932")
        record = read_sgf(text)
        assert (record.black, record.white) == names
    # The named charset is used even if one of several texts is damaged.
    names = "\u53e4\u529b", "\u67ef\u6d01"
    text = "(;CA[GBK]SZ[9]PB[{}]PW[{}]C[@ x];B[ee])".format(*names).encode("gbk")
    record = read_sgf(text.replace(b"@", b"\xff\xff"))
    assert (record.black, record.white) == names


def test_a_backslash_of_one_character_and_an_escape_are_told_apart():
    text = FORM.format("x", "y", "\u8868\\]c", "", ca="").encode("cp932")
    record = read_sgf(text)
    assert (record.moves, record.comment) == (MOVES, "\u8868]c")


def test_many_brackets_that_nothing_closes_are_refused_at_once():
    # The time used to grow quadratically, and the test would not finish.
    with refused(UsageError, "SGF text ("):
        read_sgf(b"CA[" * 300_000)


TEXTS = st.text(
    st.sampled_from("\u8868\u30bd\u80fd\u4e88\u6642a1 .,:;()B[W"), max_size=12
)


@settings(max_examples=200)
@given(
    st.sampled_from(["cp932", "gb18030", "big5hkscs", "utf-8", "utf-16"]),
    st.booleans(),
    st.lists(TEXTS, min_size=4, max_size=4),
)
def test_whatever_is_said_in_a_charset_that_is_named_moves_stay(charset, named, texts):
    texts = [text for text in texts if _can(text, charset)]
    texts = [text + "c" for text in texts] + ["c"] * (4 - len(texts))
    form = FORM.format(*texts, ca=f"CA[{charset}]" if named else "")
    try:
        moves = read_sgf(form.encode(charset)).moves
    except UsageError:
        return  # an ambiguous text is refused
    assert moves == MOVES


def _can(text, charset):
    try:
        text.encode(charset)
    except UnicodeEncodeError:
        return False
    return True


def test_every_second_byte_of_a_charset_is_part_of_its_character():
    for charset, lead in itertools.product(("cp932", "gb18030", "big5hkscs"), range(4)):
        first = (0x83, 0x8A, 0x95, 0xFA)[lead]
        for second in b"[\\]":
            try:
                name = bytes([first, second]).decode(charset)
            except UnicodeDecodeError:
                continue
            text = FORM.format(name, name, name, name, ca="").encode(charset)
            assert read_sgf(text).moves == MOVES
