import os
import signal
import threading

import pytest

from tengen.roles import StopListener
from tengen.run import RunDirectory

LONG_S = 60


@pytest.fixture
def run(tmp_path):
    return RunDirectory.create_or_resume(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_heard(run, number):
    before = signal.getsignal(number)
    told = threading.Event()
    with StopListener(run) as listener:
        listener.tell(told.set)
        os.kill(os.getpid(), number)
        assert listener.event.wait(LONG_S)
        assert told.wait(LONG_S)
    assert listener.reason == "interrupted"
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_is_ignored_stays_so(run, number):
    """A script's shell has SIGINT ignored in what it starts with "&"."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with StopListener(run) as listener:
            os.kill(os.getpid(), number)
            assert signal.getsignal(number) is signal.SIG_IGN
            assert not listener.event.is_set()
    finally:
        signal.signal(number, before)


def test_a_handler_of_c_code_is_followed_by_the_default(run, monkeypatch):
    """Python calls it None, and cannot set it again."""
    own, real = signal.getsignal(signal.SIGTERM), signal.signal

    def set_after_c(number, handler):
        real(number, handler)

    try:
        with monkeypatch.context() as c_code:
            c_code.setattr(signal, "signal", set_after_c)
            listener = StopListener(run).__enter__()
        listener.__exit__(None, None, None)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        real(signal.SIGTERM, own)
        real(signal.SIGINT, signal.default_int_handler)


def test_the_stop_file_is_heard(run):
    told = threading.Event()
    with StopListener(run) as listener:
        listener.tell(told.set)
        assert not listener.event.is_set()
        run.request_stop()
        assert told.wait(LONG_S)
    assert listener.reason == "stopped"


def test_a_stop_that_was_there_before_is_heard_at_once(run):
    run.request_stop()
    with StopListener(run) as listener:
        assert listener.event.is_set()


def test_the_first_reason_stays(run):
    with StopListener(run) as listener:
        os.kill(os.getpid(), signal.SIGINT)
        assert listener.event.wait(LONG_S)
        run.request_stop()
        told = threading.Event()
        listener.tell(told.set)
        assert told.wait(LONG_S)
    assert listener.reason == "interrupted"


def test_a_second_interrupt_is_told_apart_once_the_first_is_told(run):
    """Of two at once, as timeout(1) sends them, the second is not another wish."""
    told, second = threading.Event(), threading.Event()
    with StopListener(run, on_second=second.set) as listener:
        listener.tell(told.set)
        run.request_stop()
        assert told.wait(LONG_S)
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        assert not listener.is_urgent
        os.kill(os.getpid(), signal.SIGINT)
        assert listener.is_urgent
        assert second.wait(LONG_S)
        # Whatever hangs here is the program's own.
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_a_hangup_is_the_program_s_where_tengen_is_a_library(run, monkeypatch):
    """Only a command of tengen may point the terminal's descriptors elsewhere."""
    # Under ``nohup`` it is ignored.
    inherited = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with StopListener(run):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
        monkeypatch.setattr("tengen.roles.stopping.is_own_process", lambda: True)
        with StopListener(run) as listener:
            os.kill(os.getpid(), signal.SIGHUP)
            assert listener.event.wait(LONG_S)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with StopListener(run):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, inherited)
