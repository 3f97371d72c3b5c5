import argparse
import errno
import json
import os
import re
import shlex
import subprocess
import sys
import types
import warnings

import pytest

from tengen import cli
from tengen.errors import RunError, TengenWarning, UsageError


@pytest.fixture
def command(monkeypatch):
    """Returns a function that makes `tengen fake` run a given function."""

    def make(function, **fields):
        module = types.ModuleType("fake_command")
        module.fake = function
        module.add_arguments = lambda parser: parser.add_argument("--num-games")
        monkeypatch.setitem(sys.modules, "fake_command", module)
        row = cli.Command("fake", "fake_command:fake", "does nothing", **fields)
        monkeypatch.setattr(cli, "COMMANDS", (row,))

    return make


def raising(error):
    def function(args):
        raise error

    return function


@pytest.mark.parametrize(
    ("words", "talks", "out"),
    [
        ([], False, ["working"]),
        (["--quiet"], False, []),
        (["--quiet"], True, ["working"]),
        (["--num-games", "3", "--json"], False, ["working", {"games": "3"}]),
        (["--quiet", "--json"], False, [{"games": None}]),
    ],
)
def test_the_object_is_the_last_line_where_it_is_asked_for(
    command, capsys, words, talks, out
):
    def function(args):
        print("working")
        warnings.warn("threads (9) must be\n2; 2 are used", TengenWarning, stacklevel=1)
        return {"games": args.num_games}

    command(function, talks=talks)
    assert cli.main(["fake", *words]) == 0
    text, errors = capsys.readouterr()
    assert [json.loads(x) if x[0] == "{" else x for x in text.splitlines()] == out
    assert errors == "tengen: threads (9) must be 2; 2 are used\n"


def test_a_report_may_hold_the_exit_code(command, capsys):
    command(lambda args: {"exit_code": 130})
    assert cli.main(["fake", "--json"]) == 130
    assert json.loads(capsys.readouterr().out) == {"exit_code": 130}


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UsageError("a (1) is bad; fix it"), 2, "tengen: a (1) is bad; fix it\n"),
        (RunError("two\nlines"), 1, "tengen: two lines\n"),
        (KeyboardInterrupt(), 130, "tengen: interrupted\n"),
        (
            FileNotFoundError(errno.ENOENT, "No such file or directory", "/x"),
            1,
            "tengen: file (/x) cannot be used, no such file or directory; check it\n",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            1,
            "tengen: disk (full) has no space left; free some\n",
        ),
        (
            MemoryError(),
            1,
            "tengen: memory (all of it) is used up; request less, or free some\n",
        ),
    ],
)
def test_errors_are_one_line_and_a_code(command, capsys, error, code, line):
    command(raising(error))
    assert cli.main(["fake"]) == code
    assert capsys.readouterr().err == line


def test_errors_of_the_core_are_one_line(command, capsys, monkeypatch):
    core = types.ModuleType("tengen._core")
    core.CoreError = type("CoreError", (ValueError,), {})
    core.SchemaError = type("SchemaError", (core.CoreError,), {})
    core.DiskFullError = type("DiskFullError", (core.CoreError,), {})
    monkeypatch.setitem(sys.modules, "tengen._core", core)
    command(raising(core.CoreError("size (99) is too large; use 5 to 19")))
    assert cli.main(["fake"]) == 1
    assert capsys.readouterr().err == "tengen: size (99) is too large; use 5 to 19\n"
    command(raising(core.SchemaError("schema (9) is newer; update")))
    assert cli.main(["fake"]) == 2


def test_warnings_of_libraries_are_shown_as_python_shows_them(command, capsys):
    def function(args):
        warnings.warn("of a library", RuntimeWarning, stacklevel=1)
        return {}

    command(function)
    shown = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "_PYTHON_SHOWS", lambda *args: shown.append(str(args[0])))
        assert cli.main(["fake"]) == 0
    assert capsys.readouterr().err == ""
    assert shown == ["of a library"]


def test_a_bug_keeps_its_traceback(command):
    command(raising(KeyError("bug")))
    with pytest.raises(KeyError):
        cli.main(["fake"])


@pytest.mark.parametrize(
    ("argv", "named", "advice"),
    [
        (["fak"], "command (fak)", 'did you mean "fake"?'),
        (["fake", "--num-game=3"], "option (--num-game)", '"--num-games"?'),
        (["fake", "x"], "argument (x)", "tengen fake -h"),
        (["fake", "--num-games"], "--num-games: expected one", "tengen fake -h"),
        (["--json", "fake"], "command (--json)", "tengen --help"),
    ],
)
def test_bad_usage_is_one_line_with_advice(command, capsys, argv, named, advice):
    command(lambda args: {})
    assert_one_line(capsys, argv, named, advice)


@pytest.mark.parametrize(
    ("argv", "named", "advice"),
    [
        (["game"], "command (game)", "tengen game new or tengen game check"),
        (["env", "-h"], "command (env)", "tengen env new or tengen env check"),
        (["game", "chek"], "command (game chek)", 'did you mean "check"?'),
    ],
)
def test_half_a_command_is_told_its_other_half(capsys, argv, named, advice):
    assert_one_line(capsys, argv, named, advice)


def assert_one_line(capsys, argv, named, advice):
    assert cli.main(argv) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tengen: ")
    assert named in line
    assert advice in line


def test_overview_lists_every_command(capsys):
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {row.name} " in text for row in cli.COMMANDS)
    assert cli.main([]) == 2


def test_a_reader_that_leaves_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tengen", "--help"],
            stdout=writing,
            stderr=subprocess.PIPE,
        )
    finally:
        os.close(writing)
    assert done.stderr == b""


def test_text_of_no_encoding_is_shown_all_the_same():
    code = (
        "import sys; from tengen import cli;"
        "cli._overview = lambda: sys.argv[1];"
        "sys.exit(cli.main(['--help']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, b"run\xff"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.stdout == b"run\\udcff\n"
    assert done.returncode == 0


def test_closed_streams_are_empty():
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m tengen --help <&- >&- 2>&-"]
    )
    assert done.returncode == 0


def test_status_of_no_run_by_the_real_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tengen", "status", str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("tengen: run (")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("row", cli.COMMANDS, ids=lambda row: row.name)
def test_every_command_has_json_and_quiet(row):
    usual = cli.command_parser(row)
    inner = [
        parser
        for action in usual._actions
        if isinstance(action, argparse._SubParsersAction)
        for parser in action.choices.values()
    ]
    for parser in (usual, *inner):
        assert {"--json", "--quiet"} <= set(parser.options())


@pytest.mark.parametrize("row", cli.COMMANDS, ids=lambda row: row.name)
def test_every_command_has_two_examples_that_parse(row):
    examples = cli.examples_of(row)
    assert len(examples) == 2
    for example in examples:
        words = shlex.split(example)
        assert words[0] == "tengen"
        found, _ = cli.parse_command(words[1:])
        assert found is row
        assert example in cli.command_parser(row).format_help()


@pytest.mark.parametrize(
    "row", [row for row in cli.COMMANDS if row.rare], ids=lambda row: row.name
)
def test_rare_options_are_shown_by_help_all(row, capsys):
    rare = {f"--{name}" for name in row.rare.split()}
    parser = cli.command_parser(row)
    assert rare <= set(parser.options())
    for option, is_shown in (("--help", False), ("--help-all", True)):
        with pytest.raises(SystemExit):
            cli.main([*row.name.split(), option])
        shown = capsys.readouterr().out.partition("examples:")[0]
        rows = re.findall("^  (--[a-z-]+)", shown, re.M)
        assert {word in rows for word in rare} == {is_shown}


def test_what_answers_at_once_imports_little(tmp_path):
    """A command without a network must not wait for imports that only networks need."""
    slow = ["torch", "openvino", "onnx", "numpy", "rich", "tengen._core", "tensorboard"]
    for words, allowed in ((["--help"], 0), (["status", str(tmp_path)], 2)):
        code = (
            "import sys; from tengen.cli import main\n"
            f"assert main({words}) == {allowed}\n"
            f"print([name for name in {slow} if name in sys.modules])"
        )
        done = subprocess.run(
            [sys.executable, "-P", "-c", code], capture_output=True, text=True
        )
        assert done.stdout.splitlines()[-1] == "[]", done.stderr
