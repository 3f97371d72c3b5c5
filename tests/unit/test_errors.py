import pytest

from tengen.errors import (
    RunError,
    TengenError,
    UsageError,
    did_you_mean,
    error_message,
    error_of,
)


def test_exit_codes_tell_usage_from_failure():
    assert UsageError("x").exit_code == 2
    assert RunError("x").exit_code == 1
    assert issubclass(UsageError, TengenError)
    assert issubclass(RunError, TengenError)


def test_advice_is_the_nearest_name():
    names = ["num_games", "num_steps", "seed"]
    assert did_you_mean("num_game", names) == 'did you mean "num_games"?'


def test_advice_lists_the_names_when_none_is_near():
    assert did_you_mean("zzz", ["b", "a"]) == "known: a, b"
    assert did_you_mean("zzz", []) == "known: none"


def test_advice_for_too_many_names_is_the_callers():
    assert did_you_mean("zzz", ["b", "a"], "list them") == "list them"
    assert did_you_mean("aab", ["aaa"], "list them") == 'did you mean "aaa"?'


@pytest.mark.parametrize("error", [UsageError("a (1) must be 2; b"), RunError("c")])
def test_an_error_of_one_process_is_raised_in_another(error):
    told = error_of(error_message(error))
    assert type(told) is type(error)
    assert str(told) == str(error)


def test_an_error_that_nobody_expected_is_named_by_its_type():
    told = error_of(error_message(KeyError("x")))
    assert type(told) is RunError
    assert str(told) == "KeyError: 'x'"
