"""Answers go to the daemon, if it is still there, and in a form that it can show."""

import os
import signal

from husk.storage.workers.answers import Done, Failed
from husk.storage.workers.caller import Caller
from husk.storage.workers.messages import decode_answer


def test_an_answer_arrives():
    report, answers = os.pipe()
    Caller(answers).answer(Failed("caf\udce9\n"))
    assert decode_answer(os.read(report, 4096)) == Failed("caf\\udce9 ")
    os.close(answers)
    os.close(report)


def test_a_daemon_that_is_gone_is_no_error():
    report, answers = os.pipe()
    os.close(report)
    Caller(answers).answer(Done())
    os.close(answers)


def test_the_beginning_of_the_input_can_be_read():
    begun = os.memfd_create("begun")
    os.write(begun, b"head")
    assert Caller(-1, begun).begun() == b"head"
    assert Caller(-1).begun() == b""
    os.close(begun)


def test_a_process_is_waited_for_unless_what_it_does_is_over_before():
    report, answers = os.pipe()
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    process = os.pidfd_open(child)
    try:
        looks = iter([False, False, True])
        assert Caller(answers).wait(process, lambda: next(looks))
        signal.pidfd_send_signal(process, signal.SIGKILL)
        assert not Caller(answers).wait(process)
    finally:
        signal.pidfd_send_signal(process, signal.SIGKILL)
        os.waitpid(child, 0)
        for fd in (process, report, answers):
            os.close(fd)
