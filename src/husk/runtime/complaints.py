"""The message of a runtime that fails, as its client is told: in Docker's frame and runc's words. Pure."""

import re

import msgspec

from husk.text.documents import MalformedDocument, decode

CANNOT_START = 128


class _LogLine(msgspec.Struct):
    msg: str = ""
    level: str = ""


def fault(runtime: str, verb: str, stderr: str, command: str = "") -> str:
    """Make the message that the client gets when a runtime fails: Docker's frame around the runtime's own message."""
    text = complaint(stderr, command) or "no message"
    frame = "failed to create task for container: failed to create shim task: " if verb == "create" else ""
    # runc names itself in front of every verb but this one.
    prefix = "exec failed" if verb == "exec" else f"{runtime} {verb} failed"
    if not text.startswith(prefix):
        text = f"{prefix}: {text}"
    return f"{frame}OCI runtime {verb} failed: {text}: unknown"


def complaint(written: str, command: str = "") -> str:
    """Tell what a runtime has written about its failure, in runc's words; empty where it has none to tell of."""
    messages = []
    for line in written.splitlines():
        try:
            entry = decode(line, _LogLine)
        except MalformedDocument:
            if line.strip():
                messages.append(line.strip())
            continue
        if entry.level in ("error", "fatal", ""):
            messages.append(entry.msg)
    return _in_runc_words("; ".join(message for message in messages if message), command)


def exit_code(message: str) -> int:
    """The exit code that a container gets when it cannot be created: 127 not found, 126 not runnable, else 128."""
    text = message.lower()
    if any(sign in text for sign in ("executable file not found", "no such file or directory", "not a directory")):
        return 127
    if "permission denied" in text or "is a directory" in text:
        return 126
    return CANNOT_START


def _in_runc_words(text: str, command: str) -> str:
    """Clients know runc's sentences about a command that cannot be run; crun has its own."""
    if match := re.search(r"executable file `(.*)` not found", text):
        name = match[1]
        reason = f"stat {name}: no such file or directory" if "/" in name else "executable file not found in $PATH"
        return f'unable to start container process: exec: "{name}": {reason}'
    if re.search(r"^open executable: (Operation not permitted|Permission denied)", text):
        return f'unable to start container process: exec: "{command}": permission denied'
    if match := re.search(r"^chdir `(.*)`: (.*)$", text):
        reason = match[2].lower()
        return f'unable to start container process: chdir to cwd ("{match[1]}") set in config.json failed: {reason}'
    return text
