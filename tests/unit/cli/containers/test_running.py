import pytest

from husk.cli.containers.running import code_of


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ('exec: "x": executable file not found in $PATH', 127),
        ("exec /x: No such file or directory", 127),
        ("exec: permission denied", 126),
        ("exec: is a directory", 126),
        ("No such network", 125),
    ],
)
def test_exit_codes_as_docker_has_them(message, code):
    assert code_of(message) == code
