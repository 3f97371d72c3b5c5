import pytest
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


@pytest.mark.parametrize(
    ("word", "names", "advice"),
    [
        ("num_game", ["num_games", "num_steps", "seed"], 'did you mean "num_games"?'),
        ("zzz", ["b", "a"], "known: a, b"),
        ("zzz", [], "known: none"),
    ],
)
def test_advice_is_the_nearest_name_or_lists_them(word, names, advice):
    assert did_you_mean(word, names) == advice
    # The caller's own advice, where there are too many.
    own = advice if "mean" in advice else "list them"
    assert did_you_mean(word, names, "list them") == own


def test_advice_names_three_of_many():
    names = [f"popgym/Task{i}" for i in range(42)]
    advice = did_you_mean("x", names)
    assert advice.startswith("the nearest of 42: popgym/Task")
    assert len(advice.split(", ")) == 3
