"""A shell for the commands of a page, which stays from the first of them to the last."""

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Self

from tests.support.pages import Command, pattern
from tests.support.terminal import Terminal

DEADLINE = 60.0
_PROMPT = "/ # "


class PageFailed(AssertionError):
    """A page is not true: which line, and what happened instead."""


class Output:
    """The output of a process, as it comes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._descriptor = process.stdout.fileno()
        self.seen = ""
        self.ended = False

    def until(self, wanted: re.Pattern[str]) -> re.Match[str] | None:
        """The first match in all that came; None when it ends, or nothing comes in time."""
        deadline = time.monotonic() + DEADLINE
        while (found := wanted.search(self.seen)) is None:
            left = deadline - time.monotonic()
            if self.ended or left <= 0 or not select.select([self._descriptor], [], [], left)[0]:
                return None
            data = os.read(self._descriptor, 1 << 16)
            self.ended = not data
            self.seen += data.decode(errors="replace").replace("\r", "")
        return found


class Shell:
    """Runs the commands of one page: `enter` are the words before a command that bring it to the page's host."""

    def __init__(self, enter: Sequence[str], environment: Mapping[str, str]) -> None:
        self._enter = enter
        self._environment = dict(environment)
        self._beside: list[subprocess.Popen[bytes]] = []
        self._bash = subprocess.Popen(
            [*enter, "bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environment,
            process_group=0,
        )
        self._output = Output(self._bash)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._beside:
            _stop(process)
        os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.communicate()

    def write(self, name: str, text: str) -> None:
        """A file of the page."""
        directory = f"mkdir -p $(dirname {name}) && " if "/" in name else ""
        end = "END_OF_THE_FILE"
        self.run(Command(0, f"{directory}cat > {name} <<'{end}'\n{text}{end}", []), 0)

    def run(self, command: Command, status: int) -> None:
        """To its end; it has to print what the page says."""
        if command.stopped:
            _stop(self._go_on(command, "exec "))
            return
        assert self._bash.stdin is not None
        self._output.seen = ""
        mark = f"--- line {command.line} ended with"
        # The command is data for `eval`: what is wrong with it ends neither the shell nor what reads its answer.
        self._bash.stdin.write(
            f"eval {quote(command.text)} </dev/null; __status=$?\necho; echo {quote(mark)} $__status\n".encode()
        )
        self._bash.stdin.flush()
        found = self._output.until(re.compile(rf"\n{re.escape(mark)} (\d+)\n"))
        if found is None:
            raise PageFailed(f"{_told(command)}\ndid not end, and printed:\n{self._output.seen}")
        printed = self._output.seen[: found.start()]
        if int(found[1]) != status:
            raise PageFailed(f"{_told(command)}\nended with {found[1]}, not {status}, and printed:\n{printed}")
        _compare(command, printed)

    def go_on(self, command: Command) -> None:
        """Start it in a shell of its own, and leave it when it has printed what the page says."""
        self._beside.append(self._go_on(command, "exec "))

    def type(self, command: Command) -> None:
        """At a terminal, with what is typed there."""
        words = [*self._enter, "bash", "--noprofile", "--norc", "-c", self._there(command.text)]
        with Terminal(words, {**self._environment, "TERM": "xterm"}) as terminal:
            for line in command.printed:
                if line.startswith(_PROMPT):
                    terminal.expect(_PROMPT.encode())
                    terminal.type(line.removeprefix(_PROMPT).encode() + b"\n")
                    # What is typed comes back first.
                    terminal.expect(line.removeprefix(_PROMPT).encode())
                else:
                    for piece in filter(None, map(str.strip, line.split("..."))):
                        terminal.expect(piece.encode())
            if (status := terminal.wait()) != 0:
                raise PageFailed(f"{_told(command)}\nended with {status}, and printed:\n{terminal.seen!r}")

    def _go_on(self, command: Command, how: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*self._enter, "bash", "--noprofile", "--norc", "-c", self._there(how + command.text)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environment,
            process_group=0,
        )
        output = Output(process)
        if output.until(pattern(command.printed)) is None:
            _stop(process)
            raise PageFailed(f"{_told(command)}\nprinted:\n{output.seen}\nand not:\n{_lines(command)}")
        return process

    def _there(self, text: str) -> str:
        """A command for another shell, which is where this one is and has its variables."""
        state = f"{self._environment['HOME']}/.state"
        self.run(Command(0, f"{{ export -p; printf 'cd %q\\n' \"$PWD\"; }} > {state}", []), 0)
        return f". {state} && {text}"


def _compare(command: Command, printed: str) -> None:
    if command.printed and not pattern(command.printed).fullmatch(_plain(printed)):
        raise PageFailed(f"{_told(command)}\nprinted:\n{printed}\nand not:\n{_lines(command)}")


def _plain(printed: str) -> str:
    """With one end of line, whether a program wrote one or not."""
    text = printed.rstrip("\n")
    return f"{text}\n" if text else ""


def _stop(process: subprocess.Popen[bytes]) -> None:
    """As ctrl-c does; whoever does not hear is killed."""
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.communicate(timeout=5)
        except ProcessLookupError:
            process.communicate()
        except subprocess.TimeoutExpired:
            continue
        return


def _lines(command: Command) -> str:
    return "\n".join(command.printed)


def _told(command: Command) -> str:
    return f"line {command.line}: $ {command.text}"
