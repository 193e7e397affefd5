"""Other processes in a container: exec, top, stats."""

from typing import Any

from tests.parity.differences import NEWER
from tests.support.parity import ABSENT, Difference, Engine, Pair
from tests.support.waiting import until
from tests.support.wire import stream_of

NOT_FOUND = Difference("$.no program", 126, 127, "as with `docker run`, and as dockerd 28 does it for exec, too")


def run(engine: Engine, name: str, **config: object) -> dict[str, Any]:
    made = engine.post(f"/containers/{name}/exec", {"AttachStdout": True, "AttachStderr": True, **config})
    if made["status"] != 201:
        return made
    number = made["body"]["Id"]
    answer = engine.http("POST", f"/exec/{number}/start", {"Tty": config.get("Tty", False)})
    shown = engine.get(f"/exec/{number}/json")["body"]
    if answer.status != 200:
        output: object = answer.message
    elif config.get("Tty"):
        output = answer.body.decode()
    else:
        output = [stream_of(answer.body, stream).decode() for stream in (1, 2)]
    return {"status": answer.status, "type": answer.headers.get("Content-Type"), "output": output, "inspect": shown}


def test_exec(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.start("box", Cmd=["sleep", "60"], Env=["FROM=container"], WorkingDir="/tmp", Hostname="h")
        sh = ["sh", "-c"]
        return {
            "streams": run(engine, "box", Cmd=[*sh, "echo out; echo err >&2; exit 3"]),
            "tty": run(engine, "box", Cmd=[*sh, "test -t 1 && echo tty; env | grep TERM"], Tty=True),
            "environment": run(engine, "box", Cmd=[*sh, "env | sort; pwd; id; umask"], Env=["A=1", "FROM=exec"]),
            "user": run(engine, "box", Cmd=["id"], User="daemon"),
            "numeric user": run(engine, "box", Cmd=["id"], User="1234:5678"),
            "unknown user": run(engine, "box", Cmd=["id"], User="nosuch")["status"],
            "work dir": run(engine, "box", Cmd=["pwd"], WorkingDir="/etc"),
            "no such dir": run(engine, "box", Cmd=["pwd"], WorkingDir="/nosuch")["status"],
            "privileged": run(engine, "box", Cmd=[*sh, "grep CapEff /proc/self/status"], Privileged=True)["status"],
            "capabilities": run(engine, "box", Cmd=[*sh, "grep -E 'Cap|Seccomp:|NoNew' /proc/self/status"]),
            "no program": run(engine, "box", Cmd=["nosuch"])["inspect"]["ExitCode"],
            "killed": run(engine, "box", Cmd=[*sh, "kill -9 $$"])["inspect"]["ExitCode"],
            "no command": engine.post("/containers/box/exec", {"Cmd": []}),
            "nothing": engine.post("/containers/box/exec", {}),
            "nobody": engine.post("/containers/nobody/exec", {"Cmd": ["true"]}),
            "start nothing": engine.post("/exec/nosuch/start", {}),
            "inspect nothing": engine.get("/exec/nosuch/json"),
            "resize nothing": engine.post("/exec/nosuch/resize", h=1, w=1),
        }

    pair.same(script, NOT_FOUND, Difference("$.unknown user", 200, 400, NEWER))


def test_exec_statuses(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.start("box", Cmd=["sleep", "60"])
        created = engine.post("/containers/box/exec", {"Cmd": ["sleep", "60"]})
        number = created["body"]["Id"]
        told = {
            "inspect before": engine.get(f"/exec/{number}/json"),
            "detached": engine.post(f"/exec/{number}/start", {"Detach": True}),
            "twice": engine.post(f"/exec/{number}/start", {"Detach": True}),
            "running": engine.get(f"/exec/{number}/json"),
            "in the container": len(engine.get("/containers/box/json")["body"]["ExecIDs"] or []),
        }
        engine.http("POST", "/containers/box/pause")
        told["paused"] = engine.post("/containers/box/exec", {"Cmd": ["true"]})
        engine.http("POST", "/containers/box/unpause")
        ready = engine.post("/containers/box/exec", {"Cmd": ["true"]})["body"]["Id"]
        engine.http("POST", "/containers/box/kill")
        engine.wait("box")
        told["create in an ended one"] = engine.post("/containers/box/exec", {"Cmd": ["true"]})
        told["start in an ended one"] = engine.post(f"/exec/{ready}/start", {"Detach": True})
        told["inspect in an ended one"] = engine.get(f"/exec/{number}/json")["status"]
        return told

    pair.same(script, Difference("$.twice.body.message", "error: exec command *", "exec command *", NEWER))


def test_exec_codes_of_the_client(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.start("box", Cmd=["sleep", "60"])
        run = engine.docker
        return {
            "ok": run("exec", "box", "echo", "hi"),
            "code": run("exec", "box", "sh", "-c", "exit 9"),
            "no program": run("exec", "box", "nosuch")["exit"],
            "not executable": run("exec", "box", "/etc/passwd")["exit"],
            "input": run("exec", "-i", "box", "cat", input="in\n"),
            "nobody": run("exec", "nobody", "true"),
        }

    pair.same(script, NOT_FOUND)


def test_top(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.start("box", Cmd=["sleep", "60"])
        # For a moment after the start the runtime's own program still is the container's process.
        until(lambda: "sleep 60" in str(engine.get("/containers/box/top")), "the program runs")
        shown = engine.get("/containers/box/top")
        named = engine.get("/containers/box/top", ps_args="-o pid,comm,args")
        return {
            "titles": shown["body"]["Titles"],
            "command": [row[-1] for row in shown["body"]["Processes"]],
            "chosen": [named["body"]["Titles"], [row[1:] for row in named["body"]["Processes"]]],
            "no pid": engine.get("/containers/box/top", ps_args="-o comm"),
            "bad": engine.get("/containers/box/top", ps_args="--nosuch")["status"],
        }

    pair.same(script)


def test_stats(pair: Pair) -> None:
    def shape(value: object) -> object:
        """Types instead of numbers."""
        if isinstance(value, dict):
            return {key: shape(item) for key, item in value.items()}
        if isinstance(value, list):
            return "list"
        return type(value).__name__ if isinstance(value, int | float) else value

    def script(engine: Engine) -> object:
        engine.start("box", Cmd=["sleep", "60"])
        engine.create("idle")
        shown = engine.get("/containers/box/stats", stream=0)
        once = engine.get("/containers/box/stats", stream="false", **{"one-shot": "true"})
        idle = engine.get("/containers/idle/stats", stream=0)
        return [shape(shown), shape(once), shape(idle)]

    pair.same(
        script,
        Difference("*.memory_stats.stats.*", ABSENT, "int", "all that the kernel counts, not those that a table knows"),
        Difference("*.os_type", ABSENT, "linux", "a field of newer versions of the API"),
    )
