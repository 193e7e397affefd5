"""The line that was typed, from click's reading of it to the exit code: complaints are one line each."""

import click

from husk.cli.kit.writing import complain
from husk.errors import CommandFailed, HuskError

# As docker's client: a flag that cannot be understood, and all else that is wrong with a line.
_BAD_FLAG, _BAD_LINE = 125, 1
_ENDED_BY_USER = 130
# These speak for the daemon, not for a client.
_DAEMON = ("serve", "dockerd")


def enter(command: click.Command, name: str, arguments: list[str]) -> int:
    """Run it; the exit code."""
    try:
        outcome = command.main(arguments, prog_name=name, standalone_mode=False)
    except click.UsageError as error:
        complain(complaint(error, name))
        return code_of(error)
    except click.ClickException as error:
        complain(f"{name}: {error.format_message()}")
        return error.exit_code
    except HuskError as error:
        complain(error.message if isinstance(error, CommandFailed) else f"{name}: {error.message}")
        return 1
    except (click.Abort, KeyboardInterrupt):
        return _ENDED_BY_USER
    return outcome if isinstance(outcome, int) else 0


def complaint(error: click.UsageError, name: str) -> str:
    """Say what is wrong with a line, and where help is."""
    path = error.ctx.command_path if error.ctx is not None else name
    if isinstance(error, click.NoSuchOption):
        letter = error.option_name.lstrip("-")[:1]
        short = not error.option_name.startswith("--")
        said = (
            f"unknown shorthand flag: {letter!r} in {error.option_name}"
            if short
            else f"unknown flag: {error.option_name}"
        )
        near = f" (did you mean {' or '.join(error.possibilities)}?)" if error.possibilities else ""
        said += near
    else:
        said = error.format_message().rstrip(".").replace("No such command", "unknown command:")
        said = said[:1].lower() + said[1:]
    return f"{path}: {said}. See '{path} --help'"


def code_of(error: click.UsageError) -> int:
    if error.ctx is not None and error.ctx.command.name in _DAEMON:
        return error.exit_code
    bad_flag = isinstance(error, click.NoSuchOption | click.BadOptionUsage) or (
        isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter)
    )
    return _BAD_FLAG if bad_flag else _BAD_LINE
