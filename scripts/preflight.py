"""Reports missing requirements before anything is downloaded or built.

``preflight.py`` checks for tengen, ``preflight.py test`` for the tests' packages. Runs
on any Python 3 with only the standard library, so it uses only old syntax. Prints one
line per missing requirement and exits with 1, or prints nothing and exits with 0.
"""

import glob
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile

MIN_PYTHON = (3, 11)
MIN_MEMORY_GB = 2
# Free GB required before an installation, by its stamp file: twice the installed size,
# for pip's downloads and unpacked wheels.
MIN_DISK_GB = {"installed": 3, "test-packages": 3}
MIN_DISK_CUDA_GB = 12

# Tests the compiler and library features that the core needs.
PROGRAM = """
#include <bit>
#include <concepts>
#include <span>
template <class T> concept Number = std::integral<T> || std::floating_point<T>;
template <Number T> int width(T value) { return std::bit_width(unsigned(value)); }
int main() { int values[2] = {7, 1}; return width(std::span(values)[0]) - 3; }
"""


def problem_of_python():
    """Returns an error message about this Python, or None."""
    if sys.version_info >= MIN_PYTHON:
        return None
    newer = [
        "python3.{}".format(minor)
        for minor in range(15, MIN_PYTHON[1] - 1, -1)
        if shutil.which("python3.{}".format(minor))
    ]
    advice = "run make with PYTHON={}".format(newer[0]) if newer else "install one"
    return "python ({}) must be {}.{} or newer; {}".format(
        platform.python_version(), MIN_PYTHON[0], MIN_PYTHON[1], advice
    )


def problem_of_venv():
    """Returns an error message if venv or ensurepip (separate on Debian) is missing."""
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError as error:
        return "venv ({}) must be importable; on Debian: apt-get install {}".format(
            error, "python3-venv"
        )
    return None


def problem_of_headers():
    """Returns an error message if Python.h is missing, or None."""
    header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
    if os.path.exists(header):
        return None
    return "Python.h ({}) must exist to build the core; on Debian: {}".format(
        header, "apt-get install python3-dev"
    )


def problem_of_compiler():
    """Returns an error message about the C++ compiler, or None."""
    names = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    found = [name for name in names if name and shutil.which(name.split()[0])]
    if not found:
        return "compiler (none) must be a C++20 compiler; on Debian: {}".format(
            "apt-get install g++"
        )
    folder = tempfile.mkdtemp()
    try:
        source = os.path.join(folder, "try.cc")
        with open(source, "w") as file:
            file.write(PROGRAM)
        command = found[0].split()
        command += ["-std=c++20", source, "-o", source + ".out"]
        with open(os.devnull, "w") as nothing:
            code = subprocess.call(command, stdout=nothing, stderr=nothing)
    finally:
        shutil.rmtree(folder)
    if code == 0:
        return None
    return "compiler ({}) must compile C++20; {}".format(
        found[0], "install g++ 11 or clang 14, or name another in CXX"
    )


def has_gpu():
    """Returns whether NVIDIA's driver is installed, the only one torch is built for."""
    return bool(glob.glob("/dev/nvidia*") or shutil.which("nvidia-smi"))


def problem_of_disk(stamp):
    """Returns an error message if the disk has too little free space, or None."""
    free_gb = shutil.disk_usage(".").free / 1e9
    min_gb = MIN_DISK_GB[stamp]
    if stamp == "installed" and has_gpu():
        min_gb = MIN_DISK_CUDA_GB
    # A finished installation needs no more space.
    if free_gb >= min_gb or os.path.exists(os.path.join(".venv", stamp)):
        return None
    return "disk ({:.1f} GB free in {}) must have {} GB free; free some".format(
        free_gb, os.getcwd(), min_gb
    )


def problem_of_memory():
    """Returns an error message if memory is too small to build and train, or None."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            with open(os.path.join("/sys/fs/cgroup", path)) as file:
                limits.append(int(file.read()))
        except (OSError, ValueError):  # the file is absent or contains "max"
            pass
    if min(limits) >= MIN_MEMORY_GB * 0.95e9:
        return None
    return "memory ({:.1f} GB) must be at least {} GB; give this machine more".format(
        min(limits) / 1e9, MIN_MEMORY_GB
    )


def main():
    """Prints every problem and returns the exit code."""
    found = [problem_of_python()]
    if found[0] is None:  # the other checks need this Python
        found += [
            problem_of_venv(),
            problem_of_headers(),
            problem_of_compiler(),
            problem_of_disk("test-packages" if "test" in sys.argv else "installed"),
            problem_of_memory(),
        ]
    problems = [problem for problem in found if problem is not None]
    for problem in problems:
        print("setup: " + problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
