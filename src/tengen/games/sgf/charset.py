"""Detects the charset of SGF files and parses their bytes.

In Shift-JIS, GBK and Big5 the second byte of a character may equal ``]`` or a backslash
in ASCII. Files seldom name their charset, and some name one that is too small. So the
parser tries several decodings, called readings, and uses the reading with the most SGF
properties. A file with valid non-ASCII UTF-8 is decoded only as UTF-8, even if it names
another charset, unless its characters are also typical of that charset.

The masked reading needs no charset, and tolerates truncated characters. The text after
a byte determines whether the byte is syntax or the second byte of a character: a
bracket that closes a value is followed by another value, a property, a node or the end
of a variation.
"""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Iterable

from tengen.errors import UsageError
from tengen.games.sgf.tree import MAX_CHARACTERS, Tree, parse_tree, refuse

__all__ = ["parse_bytes"]

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# ASCII text that a charset must not change, so that brackets and names are not lost.
_ASCII = (
    "".join(map(chr, range(32, 92)))
    + "\\x41\\u0041"
    + "".join(map(chr, range(93, 127)))
)
# The charset's name. Its length is bounded, because texts may have unclosed brackets.
_NAMED = re.compile(rb"\bCA[\s\0]{0,10}\[([^\]]{0,40})\]")
# Larger charsets by name, because programs often name a subset of the charset in use.
_WIDER = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "iso8859-1": "cp1252",
}
# Charsets to guess if a file names none, with patterns of their common characters. If
# several charsets are equally likely, the first charset is used.
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
# _USUAL_RUN matches bytes of EUC or Big5 that may be valid UTF-8 by chance, and not an
# accented letter in a word. The characters of these charsets have three bytes in UTF-8.
_RUNS = re.compile(rb"[A-Za-z]?[\x80-\xff]+[A-Za-z]?")
_USUAL_RUN = re.compile(rb"(?:[\xa1-\xdf][\xa1-\xfe])+")
_MIN_THREE_BYTES = "\u0800"
# Minimum number of Hangul in Korean text. Their bytes are also common in Chinese text.
_MIN_HANGUL = 6
# Regex for the text after a bracket that closes a value, except in lists of texts.
_GAP = r"[\s\0]*+"
_AFTER = (
    rf"{_GAP}(?:$|\){_GAP}[()]|\)[^\]]{{0,2000}}\Z|\({_GAP};|;{_GAP}(?:[();]|$)"
    rf"|;?{_GAP}[A-Za-z_][A-Za-z0-9_]{{0,29}}{_GAP}\[|\[[a-z]{{2}}:)"
)
# Matches second bytes of characters: a bracket that does not close a value, or a
# backslash before a bracket that closes a value.
_SECOND = re.compile(rf"(?<=[\x81-\xfe])(?:\](?!{_AFTER})|\\(?=\]{_AFTER}))")
_MASKED_READING = "masked"
_SECOND_PLACE = 0xE000  # Start of a private use area, which files do not contain.
_MASKED = re.compile("[\ue05c\ue05d]")
# Matches a bracket, or a backslash before it, that may be a character's second byte.
_LOST = re.compile(rb"[\x81-\xfe]\\?\]")
# A property that affects the position, at the end of a value that lost its bracket.
_SWALLOWED = re.compile(
    r"(?:(?<![A-Za-z])[BW]|A[BEW]|GM|SZ|HA|KM|PL)[\s\0]*\[[A-Za-z0-9.:+-]{0,7}\Z"
)


def parse_bytes(text: bytes) -> Tree:
    """Parses the bytes of an SGF file in any charset; see ``parse_tree``.

    Byte order marks identify UTF-16 and UTF-32, and zero bytes identify UTF-16. Any
    other charset must contain ASCII unchanged.

    Raises:
        UsageError: The file is not SGF or is too long, or no charset fits, because a
            value seems to contain a property that affects the position.
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
    """Returns the reading with the most properties, the first one in case of a tie.

    A reading that confuses brackets with characters loses properties. Readings of the
    complete game are preferred to readings that end early.

    Raises:
        UsageError: All readings are broken. The error is that of the first reading.
    """
    trees: dict[str, Tree] = {}
    errors: list[UsageError] = []
    for name, text in readings.items():
        try:
            trees[name] = parse_tree(text, 2 * MAX_CHARACTERS)  # 2 bytes per character.
        except UsageError as error:
            errors.append(error)
    if not trees:
        raise errors[0]
    best = max(trees, key=lambda name: _rank(trees[name]))
    return best, trees[best]


def _rank(tree: Tree) -> tuple[bool, int]:
    return not tree.is_cut, sum(map(len, tree.nodes))


def _check_swallowed(tree: Tree, reading: str) -> None:
    """Raises UsageError if a value may contain a property that affects the position."""
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
    """Decodes all property values of a masked reading in place."""
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
    """Returns the charsets to try for a file, which is given as Latin-1 text.

    Returns the named charset, or the two most likely charsets if there is none.
    """
    if named not in ("", "utf-8"):
        return [named]
    return _guess(text)[:2] if _LEAD.search(text) else []


def _named(text: bytes) -> str:
    """Returns the charset that a file names, or its larger form; empty for none."""
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
    """Decodes a file if its charset is certain; returns None if it must be guessed."""
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
    """Decodes UTF-8 whose last character may be truncated; None for other bytes."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(text)
    except UnicodeDecodeError:
        return None


def _suits(text: bytes, unicode: str, named: str) -> bool:
    """Returns whether ``text``, valid as UTF-8, fits charset ``named`` equally well."""
    return (
        named in dict(_GUESSED)
        and max(unicode) < _MIN_THREE_BYTES
        and all(map(_USUAL_RUN.fullmatch, _RUNS.findall(text)))
        and _fits([text], named, cut=True)
    )


def _raw(value: str) -> bytes:
    """Returns the bytes of a value of a masked reading, with second bytes restored."""
    return _MASKED.sub(lambda m: chr(ord(m[0]) - _SECOND_PLACE), value).encode("latin1")


def _charset(texts: list[bytes], named: str) -> str:
    """Returns the most likely charset of property values that are not pure ASCII."""
    known = [named] if named else []
    for charset in (*known, "utf-8"):
        if _fits(texts, charset, cut=False):
            return charset
    is_other = named not in ("", "utf-8")
    num_fit = sum(_fits([text], named, cut=False) for text in texts) if is_other else 0
    if named and (_fits(texts, named, cut=True) or 2 * num_fit > len(texts)):
        return named
    everything = "\n".join(text.decode("latin-1") for text in texts)
    # Guess only if two high bytes are adjacent, because accented letters rarely are.
    guessed = _guess(everything) if _RUN.search(everything) else ()
    for cut in (False, True):
        for charset in guessed:
            if _fits(texts, charset, cut=cut):
                return charset
    if is_other:
        return named
    return "cp1252" if _fits(texts, "cp1252", cut=False) else "latin-1"


def _guess(text: str) -> list[str]:
    """Returns charsets in decreasing order of the number of their common characters."""
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
    """Returns whether texts are valid in a charset; ``cut`` allows truncated ends."""
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
