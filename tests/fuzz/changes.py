"""Mutations of valid bytes and of JSON values, such as damage or an attacker makes."""

from __future__ import annotations

import json
import random
from typing import Any

# Strings with a special meaning to some reader.
WORDS = (
    *("../../secret", "/etc/passwd", "a\0b", "\ud800", "\n", "__class__", "%s%n", ""),
    *("os:system", "tests.fuzz.planted:Game", "go/19", "go/99999", "katago:x", "NaN"),
    *("x" * 5000, "1e999", "-0", "atari/x", "openspiel/x", "\u0663", "$(touch x)"),
)
NUMBERS = (
    *(0, 1, -1, 2, 255, 256, 65535, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63),
    *(-(2**63), 2**64, 10**40, 0.5, -0.0, 1e-300, 1e300),
    *(float("inf"), float("-inf"), float("nan")),
)
_EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)


def changed(rng: random.Random, data: bytes) -> bytes:
    """Returns ``data`` with a few bytes changed, duplicated, moved or removed."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if not found:
            break
        at = rng.randrange(len(found))
        width = rng.choice((1, 2, 4, 8))
        match rng.randrange(9):
            case 0:
                found[at] ^= 1 << rng.randrange(8)
            case 1:
                del found[at:]
            case 2:
                order = rng.choice(("little", "big"))
                number = rng.choice((*_EXTREMES, len(data), len(data) - at, at))
                found[at : at + width] = (number % (1 << 8 * width)).to_bytes(
                    width, order
                )
            case 3:
                found[at : at + width] = b"\xff" * width
            case 4:
                part = found[at : at + rng.randint(1, 64)]
                place = rng.randrange(len(found))
                found[place:place] = part * rng.choice((1, 2, 50))
            case 5:
                del found[at : at + rng.randint(1, 64)]
            case 6:
                found[at:at] = rng.randbytes(rng.randint(1, 16))
            case 7:
                word = rng.choice(WORDS).encode(errors="surrogatepass")
                found[at : at + rng.choice((0, len(word)))] = word
            case 8:
                # Change digits of a text, if there are any.
                place = next(
                    (i for i in range(at, len(found)) if 48 <= found[i] < 58), at
                )
                number = str(rng.choice(NUMBERS)).encode()
                found[place : place + 1] = number
    return bytes(found)


def changed_json(rng: random.Random, value: Any) -> Any:
    """Returns ``value`` with an inner value changed, removed, renamed or repeated."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(sorted(value))
        rest = {name: value[name] for name in value if name != key}
        how = rng.random()
        if how < 0.08:
            return rest
        if how < 0.16:
            return {**rest, rng.choice((key + "x", *WORDS)): value[key]}
        return {**value, key: changed_json(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        if rng.random() < 0.2:
            return value * rng.choice((0, 2, 50))
        return [*value[:at], changed_json(rng, value[at]), *value[at + 1 :]]
    return any_json(rng)


def any_json(rng: random.Random) -> Any:
    """Returns an arbitrary JSON value, including non-standard ones of Python's json."""
    match rng.randrange(7):
        case 0:
            return rng.choice((None, True, False, [], {}, "", [[]], {"kind": "x"}))
        case 1:
            return rng.choice(WORDS)
        case 2:
            return [any_json(rng) for _ in range(rng.randrange(3))]
        case 3:
            return {rng.choice(WORDS): any_json(rng)}
        case 4:
            deep: Any = None
            for _ in range(rng.choice((3, 90))):
                deep = [deep] if rng.random() < 0.5 else {"a": deep}
            return deep
        case _:
            return rng.choice(NUMBERS)


def changed_text(rng: random.Random, data: bytes) -> bytes:
    """Returns JSON text or JSON lines with one value or some bytes changed.

    Some are nested too deep for Python, or have numbers of thousands of digits.
    """
    how = rng.random()
    if how < 0.3:
        return changed(rng, data)
    if how < 0.34:
        return rng.choice(
            (b"[" * 200_000, b'{"a":' * 200_000, b"9" * 6000, b"\xff\xfe")
        )
    lines = data.splitlines() if data.count(b"\n") > 1 else [data]
    at = rng.randrange(len(lines) or 1)
    try:
        value = changed_json(rng, json.loads(lines[at]))
    except (ValueError, IndexError):
        try:
            lines, at, value = [data], 0, changed_json(rng, json.loads(data))
        except ValueError:
            return changed(rng, data)
    lines[at] = json.dumps(value).encode()
    return b"\n".join(lines) + b"\n"
