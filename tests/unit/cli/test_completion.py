"""The scripts of ``tengen completion``, run in their shells."""

import os
import shutil
import subprocess
import sys

import pytest

from tengen.cli import COMMANDS, main
from tengen.cli.completion import TASK, completions

# Typed text with its unfinished last word, and words that must be offered, or must not
# be offered if prefixed with "!".
CASES = [
    ("tengen tra", ["train", "!match"]),
    ("tengen ", ["doctor", "game", "--version"]),
    ("tengen train --lau", ["--launch", "!--json"]),
    ("tengen train --launch ", ["inline", "local", "ray", "mpi", "!train"]),
    ("tengen train go/", ["go/9", "go/19", "!connect4"]),
    ("tengen train --agent ", ["alphazero", "ppo"]),
    ("tengen train go/9 --recipe ", ["!go/9", "gomoku"]),
    ("tengen game ", ["new", "check"]),
    ("tengen game check --", ["--games", "--quiet", "!check"]),
    ("tengen store ", ["top", "replicate"]),
    ("tengen store top --", ["--once", "!top"]),
    ("tengen bench ", ["search", "selfplay"]),
    ("tengen bench search --policy ", ["puct", "gumbel"]),
    ("tengen play g", ["go/9", "gomoku/15", "!connect4"]),
    ("tengen play ", ["go/9", "tictactoe"]),
    ("tengen match go/9 con", ["connect4", "!go/9"]),
    ("tengen play go/9 --level ", ["beginner", "master", "!go/9"]),
    ("tengen match runs/", ["runs/one/", "!runs/file.txt"]),
    ("tengen match random --games 4 runs/", ["runs/one/"]),
    ("tengen serve runs/one runs/", ["runs/one/"]),
    ("tengen report runs/one --out runs/", ["runs/file.txt"]),
    ("tengen train --minutes ", ["!go/9"]),
    ("tengen match my", ["my runs/"]),
]

BASH = """
source "$1"
read -ra COMP_WORDS <<< "$2"
[[ $2 != *" " ]] || COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_tengen
# As readline shows them: it ends folders with a stroke.
for word in "${COMPREPLY[@]}"; do [[ -d $word ]] && echo "$word/" || echo "$word"; done
"""
# zsh completes only on a key press; this compadd prints the candidates instead.
ZSH = """
compdef() { }
source "$1"
compadd() { shift; print -rl -- ${(M)@:#$words[CURRENT]*} }
_files() {
  local -a found
  if [[ ${1:-} == -/ ]]; then found=($words[CURRENT]*(N-/)); else
    found=($words[CURRENT]*(N)); fi
  for one in $found; do [[ -d $one ]] && print -r -- "$one/" || print -r -- $one; done
}
words=(${(z)2})
[[ $2 != *" " ]] || words+=("")
CURRENT=$#words
_tengen
"""
FISH = "source $argv[1]; complete -C $argv[2]"


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """The scripts, created by one process that must not import torch."""
    folder = tmp_path_factory.mktemp("completion")
    (folder / "runs" / "one").mkdir(parents=True)
    (folder / "my runs").mkdir()
    (folder / "runs" / "file.txt").touch()
    code = (
        "import contextlib, sys; from tengen.cli import main\n"
        "for shell in ('bash', 'zsh', 'fish'):\n"
        "  with open(shell, 'w') as file, contextlib.redirect_stdout(file):\n"
        "    assert main(['completion', shell]) == 0\n"
        "assert not {'torch', 'openvino', 'onnx'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True, cwd=folder)
    return folder


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_is_offered(scripts, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    wrong = {}
    for typed, wanted in CASES:
        command = {
            "bash": ["bash", "-c", BASH, "bash", "./bash", typed],
            "zsh": ["zsh", "-f", "-c", ZSH, "zsh", "./zsh", typed],
            "fish": ["fish", "--no-config", "-c", FISH, shell, typed],
        }[shell]
        done = subprocess.run(
            command,
            cwd=scripts,
            capture_output=True,
            text=True,
            env={**os.environ, "HOME": str(scripts)},
        )
        assert done.returncode in (0, 1), done.stderr
        offered = {line.split("\t")[0] for line in done.stdout.splitlines()}
        is_right = all(
            (word.removeprefix("!") in offered) != word.startswith("!")
            for word in wanted
        )
        if done.stderr or not is_right:
            wrong[typed] = sorted(offered)[:9], done.stderr
    assert wrong == {}


def test_every_command_and_option_is_in_the_table(capsys):
    table = completions()
    for command in COMMANDS:
        first, _, second = command.name.partition(" ")
        assert first in table[""]
        assert not second or second in table[f"{first} +"]
        assert {"--json", "--quiet", "--help"} <= set(table[command.name])
    assert "go/9" in table[TASK]
    # No word contains a character that is special to a shell.
    words = {word for words in table.values() for word in words}
    assert not [word for word in words if set(word) & set(" '\"$`\\*?[]")]


def test_an_unknown_shell_is_refused(capsys):
    assert main(["completion", "tcsh"]) == 2
    assert "'tcsh'" in capsys.readouterr().err
