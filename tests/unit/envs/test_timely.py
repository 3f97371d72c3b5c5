import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from tengen import envs
from tengen.envs import registry
from tengen.envs import timely as deadlines
from tengen.errors import RunError, TengenWarning, UsageError
from tengen.games import allow
from tests import environments as own
from tests.refusals import refused


def timely(cls, timeout_s=0.2):
    pytest.importorskip("gymnasium")
    return envs.TimelyEnv(
        lambda: envs.make_own(cls, "my:Env", 2, 0), timeout_s, "my:Env"
    )


def hurry(env):
    """Gives the calls from now on little time, those before had as much as they need.

    A busy machine may take long for a call that does not hang.
    """
    env._deadline.timeout_s = env._close_timeout_s = 0.2
    return env


def step_often(env):
    for _ in range(20):
        env.step(np.array([0, 0]))


def test_it_is_the_environment_that_it_holds():
    plain = envs.make_own(own.Plain, "my:Env", 2, 0)
    with contextlib.closing(plain), contextlib.closing(timely(own.Plain, 900)) as env:
        assert (env.spec, env.num_envs) == (plain.spec, 2)
        first, second = env.reset(), plain.reset()
        for _ in range(20):
            np.testing.assert_equal(first, second)
            actions = np.array([0, 1])
            first, second = env.step(actions), plain.step(actions)


def test_the_callers_thread_makes_steps_and_closes_it():
    threads = []

    class Threaded(own.Plain):
        def __init__(self):
            super().__init__()
            threads.append(threading.current_thread())

        def step(self, action):
            threads.append(threading.current_thread())
            return super().step(action)

        def close(self):
            threads.append(threading.current_thread())

    env = timely(Threaded, 900)
    env.reset()
    env.step(np.array([0, 0]))
    env.close()
    env.close()
    assert len(threads) == 6
    assert set(threads) == {threading.current_thread()}


def compiled(compiler):
    env = envs.EnvWrapper(envs.make_own(own.Plain, "my:Env", 2, 0))
    env.compile = compiler
    return env


def test_compiling_is_no_call_with_a_time_limit():
    calls = []

    class Told(envs.TimelyEnv):
        def _call(self, work, where):
            calls.append(where)
            return work()

    env = Told(lambda: compiled(lambda: calls.append("compile")), 900, "my:Env")
    env.reset()
    env.reset()
    assert calls == ["while it is made", "compile", "in reset", "in reset"]
    env = Told(lambda: compiled(lambda: 1 / 0), 900, "my:Env")
    with pytest.raises(ZeroDivisionError):
        env.reset()
    assert calls[4:] == ["while it is made", "in close"]


def test_an_environment_is_not_compiled_for_its_spec():
    suite = SimpleNamespace(prefix="my/", make=lambda *_: compiled(lambda: 1 / 0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "SUITES", (suite,))
        assert envs.env_spec("my/env").actions.is_discrete


def test_an_environment_may_need_the_main_thread():
    pytest.importorskip("gymnasium")
    allow("tests.environments:InMainThread")
    assert envs.env_spec("tests.environments:InMainThread").actions.is_discrete
    with contextlib.closing(timely(own.InMainThread, 900)) as env:
        env.reset()
        step_often(env)


def test_a_call_that_cannot_be_interrupted_ends_a_process_of_tengens_own():
    pytest.importorskip("gymnasium")
    text = """
import numpy as np
from tengen import envs
from tengen.own_process import mark_own_process
mark_own_process()
from tests.environments import HangingForGood
make = lambda: envs.make_own(HangingForGood, "my:Env", 1, 0)
env = envs.TimelyEnv(make, 900, "my:Env")
env.reset()
env._deadline.timeout_s = 0.2
env.step(np.array([0]))
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "tengen: environment (my:Env) hangs (in step): no answer for 0.2 s, and it "
        "cannot be interrupted; correct it\n"
    )


@pytest.mark.parametrize("swallowed", [Exception, BaseException])
@pytest.mark.parametrize("in_main", [True, False], ids=["main", "thread"])
def test_a_call_that_cannot_be_interrupted_is_an_error_of_a_program_once_it_returns(
    monkeypatch, swallowed, in_main
):
    """The program that has imported tengen goes on."""
    monkeypatch.setattr(deadlines, "_GRACE_S", 0.2)

    class Slow(own.Plain):
        def __init__(self):
            super().__init__()
            while not warned:
                with contextlib.suppress(swallowed):
                    time.sleep(0.02)

    raised = []

    def ask():
        try:
            timely(Slow)
        except RunError as error:
            raised.append(error)

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        if in_main:
            ask()
        else:
            thread = threading.Thread(target=ask)
            thread.start()
            thread.join()
    (error,) = raised
    assert "hangs while it is made: no answer for 0.2 s" in str(error)
    if not in_main or swallowed is BaseException:
        assert "hangs (while it is made): no answer for 0.2 s" in str(warned[0].message)


def test_what_it_raises_is_raised():
    with refused(UsageError, "gymnasium.Env"):
        timely(dict, 900)
    env = timely(own.Raising, 900)
    env.reset()
    with refused(RunError, "always fails"):
        step_often(env)
    env.close()


def test_a_call_that_hangs_is_an_error():
    with refused(RunError, "my:Env", "made", "0.2 s"):
        timely(own.HangingWhenMade)
    env = timely(own.Hanging, 900)
    env.reset()
    with refused(RunError, "step"):
        step_often(hurry(env))
    env.close()  # waits for nothing
    with refused(RunError, "close"):
        hurry(timely(own.HangingInClose, 900)).close()


@pytest.mark.parametrize("first_to_end", [0, 1])
def test_two_at_once_are_both_interrupted_whichever_ends_first(first_to_end):
    pair = [timely(own.Hanging, 900), timely(own.Hanging, 900)]
    for env in pair:
        env.reset()
        hurry(env)
    for place in (first_to_end, 1 - first_to_end):
        with refused(RunError, "step"):
            step_often(pair[place])


def test_handlers_of_the_same_signal_stay_and_get_theirs():
    got = []

    class Handling(own.Plain):
        def step(self, action):
            signal.signal(signal.SIGURG, lambda *_: got.append("environment"))
            return super().step(action)

    before = signal.signal(signal.SIGURG, lambda *_: got.append("before"))
    try:
        env = timely(own.Plain, 900)
        os.kill(os.getpid(), signal.SIGURG)
        env.close()
        os.kill(os.getpid(), signal.SIGURG)
        assert got == ["before", "before"]
        env = timely(Handling, 900)
        env.reset()
        env.step(np.array([0, 0]))
        env.close()
        os.kill(os.getpid(), signal.SIGURG)
        assert got == ["before", "before", "environment"]
    finally:
        signal.signal(signal.SIGURG, before)


def test_a_handler_of_c_code_is_followed_by_the_default(monkeypatch):
    """Python calls it None, and cannot set it again."""
    before, real = signal.getsignal(signal.SIGURG), signal.signal

    def set_after_c(number, handler):
        real(number, handler)

    try:
        with monkeypatch.context() as c_code:
            c_code.setattr(signal, "signal", set_after_c)
            env = timely(own.Plain, 900)
        env.close()
        assert signal.getsignal(signal.SIGURG) is signal.SIG_DFL
    finally:
        real(signal.SIGURG, before)


def test_what_is_asked_for_its_spaces_may_hang(monkeypatch):
    pytest.importorskip("gymnasium")
    monkeypatch.setattr(registry, "_SPEC_TIMEOUT_S", 0.2)
    allow("tests.environments:HangingWhenMade")
    with refused(RunError, "environments:HangingWhenMade"):
        envs.env_spec("tests.environments:HangingWhenMade")


@pytest.mark.parametrize(
    ("name", "words"),
    [("HangingInClose", "close"), ("RaisingInClose", "OSError: the port")],
)
def test_what_is_asked_for_its_spaces_may_fail_in_close(monkeypatch, name, words):
    pytest.importorskip("gymnasium")
    monkeypatch.setattr(registry, "_CLOSE_TIMEOUT_S", 0.2)
    task = f"tests.environments:{name}"
    allow(task)
    with pytest.warns(TengenWarning) as warned:
        assert envs.env_spec(task).actions.is_discrete
    assert len(warned) == 1
    assert words in str(warned[0].message)
    assert "\n" not in str(warned[0].message)
    envs.env_spec(task)  # is not made again


def test_a_crash_in_close_is_told_with_its_line(tmp_path):
    pytest.importorskip("gymnasium")
    (tmp_path / "my_envs.py").write_text(
        """
import ctypes
from tests.environments import Plain

class Crashing(Plain):
    def close(self):
        ctypes.string_at(0)
"""
    )
    words = ["train", "my_envs:Crashing", "--out", str(tmp_path / "run")]
    done = subprocess.run(
        [sys.executable, "-m", "tengen", *words],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.getcwd()}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == -signal.SIGSEGV
    assert f'File "{tmp_path}/my_envs.py", line 7 in close' in done.stderr
