"""Bytes changed at random, and what a reader says of them."""

from tengen.errors import TengenError


def damaged(rng, data):
    """One to three bytes changed, taken out or put in, zeroed, or the end cut off."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(changed) or 1)
        match rng.randrange(6):
            case 0:
                changed[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                changed[at : at + 1] = bytes([changed[at] ^ 1 << rng.randrange(8)])
            case 2:
                del changed[at : at + rng.randint(1, 9)]
            case 3:
                changed[at:at] = rng.randbytes(rng.randint(1, 9))
            case 4:
                changed[at : at + 8] = rng.choice([b"\0", b"\xff"]) * 8
            case 5:
                del changed[at:]
        if not changed:
            break
    return bytes(changed)


def reason(call, *args):
    """Why a call refuses, in one line; None where it does not.

    Anything but an error of the house goes through.
    """
    try:
        call(*args)
    except TengenError as error:
        text = str(error)
        assert text
        assert "\n" not in text, text
        assert len(text) < 1000
        return text
    return None
