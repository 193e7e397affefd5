"""Orders to the runtime about another process: the first one's words, with the request's own on top."""

import pytest

from husk.engine.containers.config import exec_spec
from husk.engine.model.container import Container
from husk.engine.model.container_config import ContainerConfig, ExecConfig, HostConfig
from husk.errors import InvalidParameter
from husk.runtime.spec.users import ProcessUser

FIRST: dict[str, object] = {
    "args": ["sleep", "9"],
    "user": {"uid": 1, "gid": 1},
    "capabilities": {"bounding": ["CAP_CHOWN"]},
    "rlimits": [{"type": "RLIMIT_NOFILE", "soft": 1, "hard": 2}],
    "consoleSize": {"height": 1, "width": 1},
    "terminal": True,
}
BOX = Container(
    id="1",
    name="box",
    created="",
    created_ns=0,
    image_id="",
    config=ContainerConfig(user="me", working_dir="/here", env=["A=1", "B=2"], hostname="h"),
    host_config=HostConfig(),
    path="sleep",
    args=["9"],
)


def plan(config: ExecConfig, user: ProcessUser | None = None, size: list[int] | None = None) -> dict[str, object]:
    return exec_spec.process(FIRST, BOX, exec_spec.complete(config, BOX), user, size, {"CAP_CHOWN", "CAP_SYS_ADMIN"})


def test_it_is_like_the_first_process():
    spec = plan(ExecConfig(cmd=["ls", "-l"]))
    assert (spec["args"], spec["cwd"], spec["terminal"]) == (["ls", "-l"], "/here", False)
    assert all(spec[name] == FIRST[name] for name in ("user", "capabilities", "rlimits"))
    assert "consoleSize" not in spec


def test_the_requests_own_words_win():
    config = ExecConfig(cmd=["x"], env=["B=3", "C=4"], working_dir="/there", tty=True, console_size=[2, 3])
    spec = plan(config, ProcessUser(5, 6, (6, 7)))
    assert spec["cwd"] == "/there"
    env = spec["env"]
    assert isinstance(env, list) and {"A=1", "B=3", "C=4", "TERM=xterm", "HOSTNAME=h"} <= set(env)
    assert spec["user"] == {"uid": 5, "gid": 6, "additionalGids": [6, 7]}
    assert spec["consoleSize"] == {"height": 2, "width": 3}


def test_the_size_at_the_start_wins():
    assert plan(ExecConfig(cmd=["x"], tty=True, console_size=[2, 3]), size=[4, 5])["consoleSize"] == {
        "height": 4,
        "width": 5,
    }


def test_privileged_is_what_the_host_has():
    every = ["CAP_CHOWN", "CAP_SYS_ADMIN"]
    spec = plan(ExecConfig(cmd=["x"], privileged=True))
    assert spec["capabilities"] == {"bounding": every, "effective": every, "permitted": every}


def test_completed_from_the_container():
    complete = exec_spec.complete(ExecConfig(cmd=["x"]), BOX)
    assert (complete.user, complete.working_dir) == ("me", "/here")


@pytest.mark.parametrize(
    "config",
    [
        ExecConfig(cmd=["x"], working_dir="a"),
        ExecConfig(cmd=["x\0"]),
        ExecConfig(cmd=["x"], env=["=1"]),
        ExecConfig(cmd=["x"], user="a\0"),
    ],
)
def test_what_is_refused(config: ExecConfig):
    with pytest.raises(InvalidParameter):
        exec_spec.complete(config, BOX)
