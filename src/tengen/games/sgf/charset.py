"""SGF as bytes: first its syntax, then the charset of its texts.

In Shift-JIS, GBK and Big5 the second byte of a character may be the one that is ``]``
or a backslash in ASCII. Files seldom name their charset, and some name one that is too
small. So a file is read several ways, and the way that finds the most properties is the
right one. A file that is UTF-8 and has more than ASCII is not read otherwise, whatever
it names: other charsets look so by chance in a few short texts alone. One way needs no
charset, and tolerates characters that were cut in half: a byte
that may be either is told by what follows it. A bracket that closes a value is followed
by another value, a property, a node or the end of a variation.
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
# What a charset must leave as it is, so that names of properties and brackets are seen.
_ASCII = (
    "".join(map(chr, range(32, 92)))
    + "\\x41\\u0041"
    + "".join(map(chr, range(93, 127)))
)
# A bounded name, since a text may have many brackets that nothing closes.
_NAMED = re.compile(rb"\bCA[\s\0]{0,10}\[([^\]]{0,40})\]")
# Writers name the part of a charset that everybody knows, and use all of it.
_WIDER = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "iso8859-1": "cp1252",
}
# Charsets that a file may be in without a word, and the first bytes of the characters
# that most texts in them are made of; the likeliest first where a text fits several.
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
# A text in EUC or Big5 that may be UTF-8 by chance, and no letter with an accent in a
# word; in UTF-8 all these charsets' own characters have three bytes.
_RUNS = re.compile(rb"[A-Za-z]?[\x80-\xff]+[A-Za-z]?")
_USUAL_RUN = re.compile(rb"(?:[\xa1-\xdf][\xa1-\xfe])+")
_MIN_THREE_BYTES = "\u0800"
# Hangul is most of what Korean texts are made of, and part of what looks like Chinese.
_MIN_HANGUL = 6
# What may follow the bracket that closes a value, but for a list of texts.
_GAP = r"[\s\0]*+"
_AFTER = (
    rf"{_GAP}(?:$|\){_GAP}[()]|\)[^\]]{{0,2000}}\Z|\({_GAP};|;{_GAP}(?:[();]|$)"
    rf"|;?{_GAP}[A-Za-z_][A-Za-z0-9_]{{0,29}}{_GAP}\[|\[[a-z]{{2}}:)"
)
# Second bytes of characters: a bracket that closes nothing, a backslash before one that
# closes a value.
_SECOND = re.compile(rf"(?<=[\x81-\xfe])(?:\](?!{_AFTER})|\\(?=\]{_AFTER}))")
_MASKED_READING = "masked"
_SECOND_PLACE = 0xE000  # private use, so that nobody writes it
_MASKED = re.compile("[\ue05c\ue05d]")
# A bracket that may have been read as a letter, and an escape that may be none.
_LOST = re.compile(rb"[\x81-\xfe]\\?\]")
# What makes the position, at the end of a text whose bracket was read so.
_SWALLOWED = re.compile(
    r"(?:(?<![A-Za-z])[BW]|A[BEW]|GM|SZ|HA|KM|PL)[\s\0]*\[[A-Za-z0-9.:+-]{0,7}\Z"
)


def parse_bytes(text: bytes) -> Tree:
    """Returns what ``parse_tree`` returns of a file, whatever charset it is in.

    UTF-16 and UTF-32 are told by their marks or by their zeros. Any other charset
    leaves ASCII as it is.

    Raises:
        UsageError: The file is not SGF, or too long, or a text ends in what looks like
            a move or a stone, so that no charset makes sense of the file.
    """
    if len(text) > 4 * MAX_CHARACTERS:
        rule = f"must be at most {4 * MAX_CHARACTERS} bytes; keep games apart"
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
    """Returns the reading that has the most properties, of equal ones the first.

    One that takes a bracket for a letter, or a letter for a bracket, loses some. One
    that ends before the game does is taken if there is no whole one.

    Raises:
        UsageError: As ``parse_tree`` of the first, where all are broken.
    """
    trees: dict[str, Tree] = {}
    errors: list[UsageError] = []
    for name, text in readings.items():
        try:
            trees[name] = parse_tree(text, 2 * MAX_CHARACTERS)  # two bytes each
        except UsageError as error:
            errors.append(error)
    if not trees:
        raise errors[0]
    best = max(trees, key=lambda name: _rank(trees[name]))
    return best, trees[best]


def _rank(tree: Tree) -> tuple[bool, int]:
    return not tree.is_cut, sum(map(len, tree.nodes))


def _check_swallowed(tree: Tree, reading: str) -> None:
    """Raises UsageError where a text may hide what makes the position."""
    for node in tree.nodes:
        for values in node.values():
            for value in values:
                if value.isascii() or not _SWALLOWED.search(value):
                    continue
                is_masked = reading == _MASKED_READING
                if _LOST.search(
                    _raw(value) if is_masked else value.encode(reading, "replace")
                ):
                    rule = "must be in the charset that CA names; save it as UTF-8"
                    raise refuse("text", value, rule)


def _decode(tree: Tree, named: str) -> None:
    """Makes texts of the values of a masked reading."""
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
    """Returns the charsets that a whole file may be in, of bytes as Latin-1 has them.

    That of its name, else the likeliest two.
    """
    if named not in ("", "utf-8"):
        return [named]
    return _guess(text)[:2] if _LEAD.search(text) else []


def _named(text: bytes) -> str:
    """Returns the charset that a file names, as wide as it is used; empty for none."""
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
    """Returns a text whose syntax does not depend on a guess, else None."""
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
    """Returns a text that is UTF-8 but for a character at its end that was cut."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(text)
    except UnicodeDecodeError:
        return None


def _suits(text: bytes, unicode: str, named: str) -> bool:
    """Returns whether what may be UTF-8 is at least as likely what a file names."""
    return (
        named in dict(_GUESSED)
        and max(unicode) < _MIN_THREE_BYTES
        and all(map(_USUAL_RUN.fullmatch, _RUNS.findall(text)))
        and _fits([text], named, cut=True)
    )


def _raw(value: str) -> bytes:
    """Returns the bytes of a value, its second bytes put back."""
    return _MASKED.sub(lambda m: chr(ord(m[0]) - _SECOND_PLACE), value).encode("latin1")


def _charset(texts: list[bytes], named: str) -> str:
    """Returns the charset of all texts, and so of each that has more than ASCII."""
    known = [named] if named else []
    for charset in (*known, "utf-8"):
        if _fits(texts, charset, cut=False):
            return charset
    is_other = named not in ("", "utf-8")
    num_fit = sum(_fits([text], named, cut=False) for text in texts) if is_other else 0
    if named and (_fits(texts, named, cut=True) or 2 * num_fit > len(texts)):
        return named
    everything = "\n".join(text.decode("latin-1") for text in texts)
    # A letter with an accent has none beside it, or seldom.
    guessed = _guess(everything) if _RUN.search(everything) else ()
    for cut in (False, True):
        for charset in guessed:
            if _fits(texts, charset, cut=cut):
                return charset
    if is_other:
        return named
    return "cp1252" if _fits(texts, "cp1252", cut=False) else "latin-1"


def _guess(text: str) -> list[str]:
    """Returns charsets, the likeliest first: that with most of its usual characters."""
    num_hangul = len(_GUESSED[3][1].findall(text))
    counts = {name: len(usual.findall(text)) for name, usual in _GUESSED}
    num_pairs = len(_PAIRS.findall(text))
    if counts["euc_jp"]:
        counts["euc_jp"] += num_pairs
    if num_pairs == num_hangul >= _MIN_HANGUL:
        counts["cp949"] += 1
    # Sorting keeps the order of equal ones.
    return sorted(counts, key=lambda name: -counts[name])


def _fits(texts: Iterable[bytes], charset: str, *, cut: bool) -> bool:
    """Returns whether texts are in a charset, each but for a cut last character."""
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
