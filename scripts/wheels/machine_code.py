"""Checks an extension's instructions and libraries with binutils.

A wheel runs on every x86-64-v2 processor. Only the vector kernels, which are selected
at run time, may use newer instructions.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

# The mangled namespaces of core/simd's kernels.
KERNELS = re.compile(r"6tengen4simd(4avx2|6avx512)")
# Libraries of every Linux system, on which manylinux relies.
SYSTEM_LIBRARIES = {
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
}
FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
# A disassembled instruction above x86-64-v2: VEX and EVEX mnemonics begin with v
# (unlike the older verr and verw); BMI and mask instructions are listed.
ADVANCED = re.compile(
    r"^\s+[0-9a-f]+:\s+(?:[{]\w+[}] )?"
    r"(v(?!err\b|erw\b)\w+|andn|bextr|blsi|blsr|blsmsk|bzhi|mulx|pdep|pext|rorx|sarx"
    r"|shlx|shrx|movbe|k(?:mov|or|and|xor|not|test|unpck|shift)\w*)\b"
)
MOST_SHOWN = 5


def instruction_problems(extension: Path) -> list[str]:
    """Returns functions outside the kernels with instructions above x86-64-v2.

    Args:
        extension: A shared library with symbols.
    """
    lines = _shown("objdump", "-d", "--no-show-raw-insn", str(extension))
    found = functions_above_baseline(lines)
    outside = {name: what for name, what in found.items() if not KERNELS.search(name)}
    problems = [
        f"function ({name}) must run on x86-64-v2 and has {what}"
        for name, what in list(outside.items())[:MOST_SHOWN]
    ]
    if len(outside) > MOST_SHOWN:
        problems.append(f"{len(outside) - MOST_SHOWN} more functions are alike")
    if len(found) == len(outside):
        problems.append(
            "kernels (avx2, avx512) are not seen; the symbols are gone, or other names"
        )
    return problems


def functions_above_baseline(lines: Iterable[str]) -> dict[str, str]:
    """Returns functions with newer instructions, and each one's first instruction.

    Args:
        lines: Output of ``objdump -d --no-show-raw-insn``.
    """
    found: dict[str, str] = {}
    function = "?"
    for line in lines:
        if is_function := FUNCTION.match(line):
            function = is_function[1]
        elif function not in found and (used := ADVANCED.match(line)):
            found[function] = used[1]
    return found


def library_problems(extension: Path) -> list[str]:
    """Returns one line for each required library that a Linux system may lack."""
    lines = _shown("readelf", "-d", str(extension))
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", "\n".join(lines))
    return [
        f"library ({name}) is not every system's; link it into the extension"
        for name in sorted(set(needed) - SYSTEM_LIBRARIES)
    ]


def glibc_needed(extension: Path) -> dict[str, str]:
    """Returns the symbols that need the newest glibc, with their versions.

    Args:
        extension: A shared library.
    """
    symbols: dict[str, str] = {}
    for line in _shown("objdump", "-T", str(extension)):
        if found := re.search(r"\(?GLIBC_([\d.]+)\)?\s+(\w+)$", line):
            symbols[found[2]] = found[1]
    newest = max(symbols.values(), key=_version, default="")
    return {name: version for name, version in symbols.items() if version == newest}


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split("."))


def _shown(*command: str) -> Iterator[str]:
    """Yields a program's output lines, which may be too many to hold in memory."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            yield line.rstrip("\n")
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
