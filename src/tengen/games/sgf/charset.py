"""Parses the bytes of SGF files, whose charset it detects.

In Shift-JIS, GBK and Big5, the second byte of a character may be the ASCII code of
``]`` or of a backslash. Files seldom name their charset, and some name a subset of it.
The parser therefore tries several decodings, called readings, and uses the reading with
the most SGF properties. A file that contains non-ASCII characters and is valid UTF-8 is
decoded as UTF-8, even if it names another charset, unless its bytes are also typical of
that charset.

The masked reading needs no charset, and tolerates truncated characters. It decides from
the text after a bracket whether the bracket is syntax or the second byte of a
character: after a bracket that closes a value comes another value, a property, a node
or the end of a variation.
"""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Iterable

from tengen.errors import UsageError
from tengen.games.sgf.tree import MAX_CHARACTERS, Tree, parse_tree, refuse

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# A charset must decode this ASCII text to itself; otherwise the syntax would be lost.
_ASCII = (
    "".join(map(chr, range(32, 92)))
    + "\\x41\\u0041"
    + "".join(map(chr, range(93, 127)))
)
# Matches the charset's name. Its length is bounded in case the bracket is not closed.
_NAMED = re.compile(rb"\bCA[\s\0]{0,10}\[([^\]]{0,40})\]")
# Supersets of charsets: programs often name a subset of the charset that they use.
_WIDER = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "iso8859-1": "cp1252",
}
# Charsets to guess if a file names none, with patterns of their common characters. The
# earlier one wins a tie.
_GUESSED = (
    ("gb18030", re.compile(r"[\xa1\xa3\xb0-\xd7][\xa1-\xfe]")),
    ("cp932", re.compile(r"[\x81-\x83\x88-\x97][\x40-\x7e\x80-\xfc]")),
    ("euc_jp", re.compile(r"[\xa4\xa5][\xa1-\xf6]")),
    ("cp949", re.compile(r"[\xb0-\xc8][\xa1-\xfe]")),
    ("big5hkscs", re.compile(r"[\xa1\xa4-\xc6][\x40-\x7e\xa1-\xfe]")),
)
_PAIRS = re.compile(r"[\x81-\xfe][\x40-\x7e\x80-\xfe]")
_RUN = re.compile(r"[\x80-\xff]{2}")
_LEAD = re.compile(r"[\x80-\xff][\x80-\xff\\]")
_HIGH = re.compile(r"[\x80-\xff]")
# _USUAL_RUN matches EUC or Big5 text whose bytes may be valid UTF-8 by chance, but does
# not match an accented letter in a word. In real UTF-8, the characters of these
# charsets take three bytes.
_RUNS = re.compile(rb"[A-Za-z]?[\x80-\xff]+[A-Za-z]?")
_USUAL_RUN = re.compile(rb"(?:[\xa1-\xdf][\xa1-\xfe])+")
_MIN_THREE_BYTES = "\u0800"
# Minimum number of Hangul in Korean text; their bytes are also common in Chinese text.
_MIN_HANGUL = 6
# The text after a bracket that closes a value, unless another text value follows.
_GAP = r"[\s\0]*+"
_AFTER = (
    rf"{_GAP}(?:$|\){_GAP}[()]|\)[^\]]{{0,2000}}\Z|\({_GAP};|;{_GAP}(?:[();]|$)"
    rf"|;?{_GAP}[A-Za-z_][A-Za-z0-9_]{{0,29}}{_GAP}\[|\[[a-z]{{2}}:)"
)
# Matches the second byte of a character: a bracket that does not close a value, or a
# backslash before a bracket that does.
_SECOND = re.compile(rf"(?<=[\x81-\xfe])(?:\](?!{_AFTER})|\\(?=\]{_AFTER}))")
_MASKED_READING = "masked"
_SECOND_PLACE = 0xE000  # Start of a private use area, absent from files.
_MASKED = re.compile("[\ue05c\ue05d]")
# Matches a bracket, or a backslash and a bracket, that may end a 2-byte character.
_LOST = re.compile(rb"[\x81-\xfe]\\?\]")
# Matches a property that affects the position, swallowed by a value before it whose
# closing bracket was misread.
_SWALLOWED = re.compile(
    r"(?:(?<![A-Za-z])[BW]|A[BEW]|GM|SZ|HA|KM|PL)[\s\0]*\[[A-Za-z0-9.:+-]{0,7}\Z"
)


def parse_bytes(text: bytes) -> Tree:
    """Parses the bytes of an SGF file in any charset; see ``parse_tree``.

    UTF-16 is recognized by its byte order mark or its zero bytes, and UTF-32 by its
    byte order mark. All other charsets must be supersets of ASCII.

    Raises:
        UsageError: The file is not SGF or is too long, or no charset fits: in every
            reading a value seems to contain a property that affects the position.
    """
    if len(text) > 4 * MAX_CHARACTERS:
        rule = f"must be at most {4 * MAX_CHARACTERS} bytes; split the file"
        raise refuse("text", f"{len(text)} bytes", rule)
    named = _named(text)
    whole = _whole(text, named)
    if whole is not None:
        return parse_tree(whole.removeprefix("\ufeff"))
    plain = text.decode("latin-1")
    masked = _SECOND.sub(lambda second: chr(_SECOND_PLACE + ord(second[0])), plain)
    readings = {_MASKED_READING: masked}
    for charset in _likely(plain, named):
        with contextlib.suppress(UnicodeDecodeError):
            readings[charset] = text.decode(charset)
    best, tree = _fullest(readings)
    _check_swallowed(tree, best)
    if best == _MASKED_READING:
        _decode(tree, named)
    return tree


def _fullest(readings: dict[str, str]) -> tuple[str, Tree]:
    """Returns (name, tree) of the reading with the most properties; the first in a tie.

    A reading that mistakes characters for brackets, or the reverse, loses properties. A
    reading of a complete game is preferred to one that ends early.

    Raises:
        UsageError: No reading can be parsed. The error is that of the first reading.
    """
    trees: dict[str, Tree] = {}
    errors: list[UsageError] = []
    for name, text in readings.items():
        try:
            trees[name] = parse_tree(text, 2 * MAX_CHARACTERS)  # Masked: a byte each.
        except UsageError as error:
            errors.append(error)
    if not trees:
        raise errors[0]
    best = max(trees, key=lambda name: _rank(trees[name]))
    return best, trees[best]


def _rank(tree: Tree) -> tuple[bool, int]:
    return not tree.is_cut, sum(map(len, tree.nodes))


def _check_swallowed(tree: Tree, reading: str) -> None:
    """Raises UsageError if a value may have swallowed a property of the position."""
    for node in tree.nodes:
        for values in node.values():
            for value in values:
                if value.isascii() or not _SWALLOWED.search(value):
                    continue
                is_masked = reading == _MASKED_READING
                if _LOST.search(
                    _raw(value) if is_masked else value.encode(reading, "replace")
                ):
                    rule = "must match the charset in CA; save it as UTF-8"
                    raise refuse("text", value, rule)


def _decode(tree: Tree, named: str) -> None:
    """Decodes the property values of a masked reading, in place."""
    texts = [
        value
        for node in tree.nodes
        for values in node.values()
        for value in values
        if _HIGH.search(value)
    ]
    charset = _charset([_raw(value) for value in texts], named)
    for node in tree.nodes:
        for name, values in node.items():
            node[name] = [_decoded(value, charset) for value in values]


def _likely(text: str, named: str) -> list[str]:
    """Returns the charsets to try for a file, whose bytes are given as Latin-1.

    These are the named charset, or the two most likely charsets if none is named.
    """
    if named not in ("", "utf-8"):
        return [named]
    return _guess(text)[:2] if _LEAD.search(text) else []


def _named(text: bytes) -> str:
    """Returns the charset that a file names, or its superset; empty for none."""
    match = _NAMED.search(text)
    name = match[1].decode("latin-1").strip() if match else ""
    try:
        if not name or _ASCII.encode().decode(name) != _ASCII:
            return ""
        known = codecs.lookup(name).name
    except (LookupError, ValueError):
        return ""
    return "" if known == "ascii" else _WIDER.get(known, known)


def _whole(text: bytes, named: str) -> str | None:
    """Decodes a file whose charset is certain; returns None for any other file."""
    for mark, charset in _BOMS:
        if text.startswith(mark):
            return text[len(mark) :].decode(charset, errors="replace")
    num_zeros = text[::2].count(0), text[1::2].count(0)
    if max(num_zeros) > len(text) // 4:
        charset = "utf-16-be" if num_zeros[0] > num_zeros[1] else "utf-16-le"
        return text.decode(charset, errors="replace")
    unicode = _as_utf8(text)
    is_more = unicode is not None and not unicode.isascii()
    if unicode is not None and is_more and not _suits(text, unicode, named):
        return unicode
    if b"\x1b$" in text or named == "iso2022_jp":
        return text.decode("iso2022_jp_ext", errors="replace")
    return unicode if named in ("", "utf-8") else None


def _as_utf8(text: bytes) -> str | None:
    """Decodes UTF-8 whose last character may be cut off; None for other bytes."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(text)
    except UnicodeDecodeError:
        return None


def _suits(text: bytes, unicode: str, named: str) -> bool:
    """Returns whether ``text``, though valid UTF-8, also suits charset ``named``."""
    return (
        named in dict(_GUESSED)
        and max(unicode) < _MIN_THREE_BYTES
        and all(map(_USUAL_RUN.fullmatch, _RUNS.findall(text)))
        and _fits([text], named, cut=True)
    )


def _raw(value: str) -> bytes:
    """Returns the original bytes of a value of a masked reading."""
    return _MASKED.sub(lambda m: chr(ord(m[0]) - _SECOND_PLACE), value).encode("latin1")


def _charset(texts: list[bytes], named: str) -> str:
    """Returns the most likely charset of property values, none of them pure ASCII."""
    known = [named] if named else []
    for charset in (*known, "utf-8"):
        if _fits(texts, charset, cut=False):
            return charset
    is_other = named not in ("", "utf-8")
    num_fit = sum(_fits([text], named, cut=False) for text in texts) if is_other else 0
    if named and (_fits(texts, named, cut=True) or 2 * num_fit > len(texts)):
        return named
    everything = "\n".join(text.decode("latin-1") for text in texts)
    # Guess only if two high bytes are adjacent. Accented letters rarely are.
    guessed = _guess(everything) if _RUN.search(everything) else ()
    for cut in (False, True):
        for charset in guessed:
            if _fits(texts, charset, cut=cut):
                return charset
    if is_other:
        return named
    return "cp1252" if _fits(texts, "cp1252", cut=False) else "latin-1"


def _guess(text: str) -> list[str]:
    """Returns charsets, those with the most common characters in ``text`` first."""
    num_hangul = len(_GUESSED[3][1].findall(text))
    counts = {name: len(usual.findall(text)) for name, usual in _GUESSED}
    num_pairs = len(_PAIRS.findall(text))
    if counts["euc_jp"]:
        counts["euc_jp"] += num_pairs
    if num_pairs == num_hangul >= _MIN_HANGUL:
        counts["cp949"] += 1
    # The sort is stable, so ties keep the order of _GUESSED.
    return sorted(counts, key=lambda name: -counts[name])


def _fits(texts: Iterable[bytes], charset: str, *, cut: bool) -> bool:
    """Returns whether texts are valid; ``cut`` allows a truncated last character."""
    make_decoder = codecs.getincrementaldecoder(charset)
    try:
        for text in texts:
            make_decoder().decode(text, final=not cut)
    except (UnicodeDecodeError, LookupError):
        return False
    return True


def _decoded(value: str, charset: str) -> str:
    if not _HIGH.search(value):
        return value
    return _raw(value).decode(charset, errors="replace")
