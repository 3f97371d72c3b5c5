"""The worked example of docs/adding/native_game.md, compiled against the core."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs"
FLAGS = ("-std=c++20", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror")

# The registry row of the page, without linking code for the other games' rows.
ROW = """
#include "games/domineering/domineering.h"
#include "games/registry/registry.h"

int main() {
  using Row = tengen::OneName<tengen::Domineering>;
  TENGEN_CHECK(Row::make("domineering").has_value() && !Row::make("go/9"));
  TENGEN_CHECK(Row::names().size() == 1 && Row::forms() == "domineering");
}
"""


def blocks(page, language):
    text = (PAGES / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


@pytest.fixture
def compiler():
    """Returns a C++ compiler; skips the test if there is none."""
    found = shutil.which("g++") or shutil.which("clang++")
    return found or pytest.skip("there is no C++ compiler; install g++")


def run(compiler, folder, source, *more):
    """Compiles a program against the core and runs it."""
    program = folder / source.stem
    core = ROOT / "core"
    found = [*(str(core / name) for name in ("games/text.cc", "base/rng.cc")), *more]
    line = [compiler, *FLAGS, f"-I{core}", f"-I{folder}", str(source), *found]
    made = subprocess.run([*line, "-o", str(program)], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr


def test_it_plays_random_games(compiler, tmp_path):
    header, test = blocks("adding/native_game.md", "cpp")
    folder = tmp_path / "games" / "domineering"
    folder.mkdir(parents=True)
    (folder / "domineering.h").write_text(header)
    source = folder / "domineering_test.cc"
    source.write_text(test)
    run(compiler, tmp_path, source)
    row = tmp_path / "row.cc"
    row.write_text('#include "base/testing.h"\n' + ROW)
    run(compiler, tmp_path, row)


def test_its_counts_are_those_of_the_game_in_python():
    (block,) = blocks("tutorials/own_game.md", "python")
    module = {}
    exec(block, module)
    game = module["Domineering"]()

    def perft(state, depth):
        if depth == 0:
            return 1
        legal = [] if game.is_terminal(state) else game.legal_actions(state)
        return sum(perft(game.apply(state, action), depth - 1) for action in legal)

    _, test = blocks("adding/native_game.md", "cpp")
    (counts,) = re.findall(r"expected\[\] = \{(.*?)\};", test)
    expected = [int(count) for count in counts.split(", ")]
    assert [perft(game.initial_state(), depth) for depth in range(4)] == expected
