import pytest

from husk.cli.kit.plain import plainly

FRAME = (
    "failed to create task for container: failed to create shim task: OCI runtime create failed: crun create failed: "
)
EXEC = "OCI runtime exec failed: exec failed: "


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            FRAME + 'unable to start container process: exec: "ngnix": executable file not found in $PATH: unknown',
            '"ngnix" is not in the image nginx (did you mean nginx?)',
        ),
        (
            FRAME + 'unable to start container process: exec: "/x": stat /x: no such file or directory: unknown',
            '"/x" is not in the image nginx',
        ),
        (
            EXEC + 'unable to start container process: exec: "/bin": permission denied: unknown',
            '"/bin" cannot be executed: permission denied (it is not executable, or a directory)',
        ),
        (
            FRAME + 'chdir to cwd ("/a") set in config.json failed: not a directory: unknown',
            'the working directory "/a" cannot be entered: not a directory',
        ),
        (FRAME + "write to cgroup: no space left: unknown", "write to cgroup: no space left"),
        ("No such image: x", "No such image: x"),
    ],
)
def test_what_is_told(message, told):
    assert plainly(message, "nginx", ["nginx", "sh"]) == told


def test_without_an_image():
    message = EXEC + 'unable to start container process: exec: "x": executable file not found in $PATH: unknown'
    assert plainly(message) == '"x" is not in its image'
