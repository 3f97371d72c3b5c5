import torch

from tengen.errors import RunError, TengenError, UsageError, did_you_mean, refusal


def test_exit_codes_tell_usage_from_failure():
    assert UsageError("x").exit_code == 2
    assert RunError("x").exit_code == 1
    assert issubclass(UsageError, TengenError)
    assert issubclass(RunError, TengenError)


def test_what_torch_says_of_a_full_gpu_is_one_line():
    refused = refusal(torch.OutOfMemoryError("CUDA out of memory. Tried\nto ..."))
    assert isinstance(refused, RunError)
    assert str(refused).startswith("device memory (all of it) is used up; ")
    assert refusal(RuntimeError("a bug")) is None


def test_advice_is_the_nearest_name():
    names = ["num_games", "num_steps", "seed"]
    assert did_you_mean("num_game", names) == 'did you mean "num_games"?'


def test_advice_lists_the_names_when_none_is_near():
    assert did_you_mean("zzz", ["b", "a"]) == "known: a, b"
    assert did_you_mean("zzz", []) == "known: none"


def test_advice_names_three_of_many():
    names = [f"popgym/Task{i}" for i in range(42)]
    advice = did_you_mean("x", names)
    assert advice.startswith("the nearest of 42: popgym/Task")
    assert len(advice.split(", ")) == 3


def test_advice_for_too_many_names_is_the_callers():
    assert did_you_mean("zzz", ["b", "a"], "list them") == "list them"
    assert did_you_mean("aab", ["aaa"], "list them") == 'did you mean "aaa"?'
