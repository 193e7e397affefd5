import json

import pytest

from husk.runtime.complaints import exit_code, fault

FRAME = "failed to create task for container: failed to create shim task: OCI runtime create failed: "


def line(message: str, level: str = "error") -> str:
    return json.dumps({"msg": message, "level": level, "time": "now"}) + "\n"


@pytest.mark.parametrize(
    ("runtime", "stderr", "expected", "code"),
    [
        (
            "runc",
            line(
                'runc create failed: unable to start container process: exec: "x": executable file not found in $PATH'
            ),
            'runc create failed: unable to start container process: exec: "x": executable file not found in $PATH',
            127,
        ),
        (
            "crun",
            line("executable file `x` not found in $PATH: No such file or directory"),
            'crun create failed: unable to start container process: exec: "x": executable file not found in $PATH',
            127,
        ),
        (
            "crun",
            line("executable file `/x` not found in $PATH: No such file or directory"),
            'crun create failed: unable to start container process: exec: "/x": stat /x: no such file or directory',
            127,
        ),
        (
            "crun",
            line("open executable: Operation not permitted"),
            'crun create failed: unable to start container process: exec: "/etc": permission denied',
            126,
        ),
        ("crun", line("something else"), "crun create failed: something else", 128),
        ("crun", line("careful", "warning") + line("broken"), "crun create failed: broken", 128),
        ("odd", "plain words\nmore\n", "odd create failed: plain words; more", 128),
        ("odd", "", "odd create failed: no message", 128),
    ],
)
def test_a_failed_create_is_told_in_dockers_frame(runtime: str, stderr: str, expected: str, code: int) -> None:
    message = fault(runtime, "create", stderr, "/etc")
    assert message == f"{FRAME}{expected}: unknown"
    assert exit_code(message) == code


def test_other_verbs_have_their_own_frame() -> None:
    assert fault("crun", "pause", line("no")) == "OCI runtime pause failed: crun pause failed: no: unknown"
