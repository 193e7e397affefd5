"""Answers of the engine when a container is moved through its life, also where it cannot go."""

import time
from concurrent.futures import ThreadPoolExecutor

from tests.parity.differences import DEFAULT_NETWORK, HOST_CONFIG, NEWER, NOT_PRIVILEGED, refused
from tests.support.parity import ABSENT, ANY, Difference, Engine, Pair

NO_ERROR = Difference("*.Error", None, ABSENT, "dockerd 23 leaves it out where there is none")


def test_statuses_of_a_life(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.create("box", Cmd=["sleep", "60"])
        told: dict[str, object] = {}

        def step(what: str, method: str, path: str, **query: object) -> None:
            told[f"{len(told):02} {what}"] = engine.ask(method, path, **query)

        step("stop created", "POST", "/containers/box/stop")
        step("kill created", "POST", "/containers/box/kill")
        step("pause created", "POST", "/containers/box/pause")
        step("unpause created", "POST", "/containers/box/unpause")
        step("resize created", "POST", "/containers/box/resize", h=10, w=10)
        step("top created", "GET", "/containers/box/top")
        step("start", "POST", "/containers/box/start")
        step("start twice", "POST", "/containers/box/start")
        step("remove running", "DELETE", "/containers/box")
        step("unpause running", "POST", "/containers/box/unpause")
        step("bad signal", "POST", "/containers/box/kill", signal="NOPE")
        step("signal 0", "POST", "/containers/box/kill", signal="0")
        step("signal 99", "POST", "/containers/box/kill", signal="99")
        step("pause", "POST", "/containers/box/pause")
        step("pause twice", "POST", "/containers/box/pause")
        step("start paused", "POST", "/containers/box/start")
        step("remove paused", "DELETE", "/containers/box")
        step("attach paused", "POST", "/containers/box/attach", stream=1, stdout=1)
        step("exec paused", "POST", "/containers/box/exec", **{})
        step("unpause", "POST", "/containers/box/unpause")
        step("rename to itself", "POST", "/containers/box/rename", name="box")
        step("rename to nothing", "POST", "/containers/box/rename", name="")
        step("rename badly", "POST", "/containers/box/rename", name="a/b")
        step("rename", "POST", "/containers/box/rename", name="crate")
        step("old name", "GET", "/containers/box/json")
        step("rename back", "POST", "/containers/crate/rename", name="/box")
        step("stop", "POST", "/containers/box/stop", t=0)
        step("stop twice", "POST", "/containers/box/stop")
        step("kill ended", "POST", "/containers/box/kill")
        step("pause ended", "POST", "/containers/box/pause")
        step("restart ended", "POST", "/containers/box/restart", t=0)
        step("restart running", "POST", "/containers/box/restart", t=0)
        step("stop, bad time", "POST", "/containers/box/stop", t="x")
        step("kill", "POST", "/containers/box/kill")
        step("wait", "POST", "/containers/box/wait")
        step("wait, odd condition", "POST", "/containers/box/wait", condition="bored")
        step("remove", "DELETE", "/containers/box")
        step("remove again", "DELETE", "/containers/box")
        step("remove by force", "DELETE", "/containers/box", force=1)
        for verb in ("start", "stop", "kill", "pause", "unpause", "restart", "wait", "resize?h=1&w=1", "rename?name=x"):
            step(f"{verb} nobody", "POST", f"/containers/nobody/{verb}")
        for what in ("json", "top", "logs?stdout=1", "changes", "export", "stats?stream=0", "archive?path=/"):
            step(f"{what} of nobody", "GET", f"/containers/nobody/{what}")
        step("update nobody", "POST", "/containers/nobody/update")
        step("exec nobody", "POST", "/containers/nobody/exec")
        return told

    remove = 'cannot remove container "box": container is '
    pair.same(
        script,
        refused("$.?? unpause *.status", 500, 409),
        refused("$.12 signal 99.status", 500, 400),
        Difference("$.1? *signal*.body.message", "invalid signal: *", "cannot kill container: box: invalid *", NEWER),
        refused("$.32 stop, bad time.status", 500, 400),
        refused("$.32 stop, bad time.body.message", "strconv.atoi: *", "invalid value 'x' for t: not a number"),
        Difference("$.?? update nobody.status", 500, 404, NEWER),
        Difference("$.*.message", "*eof*", "no *", "an empty body is an empty object to dockerd 28"),
        refused("$.35 wait, odd condition.*", ANY, ANY),
        Difference("$.08 remove running.body.message", "you cannot remove *", f"{remove}running: *", NEWER),
        Difference("$.16 remove paused.body.message", "you cannot remove *", f"{remove}paused and *", NEWER),
        NO_ERROR,
    )


def test_names_and_references(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        made = engine.create("box")
        return {
            "taken": engine.post("/containers/create", {"Image": "parity"}, name="box"),
            "taken with a slash": engine.post("/containers/create", {"Image": "parity"}, name="/box"),
            "too short": engine.post("/containers/create", {"Image": "parity"}, name="a"),
            "odd": engine.post("/containers/create", {"Image": "parity"}, name="a b"),
            "by short id": engine.get(f"/containers/{made[:12]}/json")["body"]["Id"],
            "by shorter id": engine.get(f"/containers/{made[:5]}/json")["body"]["Id"],
            "rename to a taken one": _rename(engine),
        }

    def _rename(engine: Engine) -> object:
        engine.create("other")
        return engine.post("/containers/other/rename", name="box")

    pair.same(script)


def test_wait_conditions(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        told: dict[str, object] = {}
        engine.create("box", Cmd=["sh", "-c", "sleep 1; exit 5"])
        told["not running"] = engine.post("/containers/box/wait")
        with ThreadPoolExecutor(2) as threads:
            waiting = {
                condition: threads.submit(engine.post, "/containers/box/wait", condition=condition)
                for condition in ("next-exit", "removed")
            }
            engine.http("POST", "/containers/box/start")
            told["running"] = engine.post("/containers/box/wait", condition="not-running")
            engine.http("DELETE", "/containers/box")
            return {**told, **{condition: waiter.result() for condition, waiter in waiting.items()}}

    pair.same(script, NO_ERROR)


def test_exit_codes_of_run(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        run = engine.docker
        return {
            "ok": run("run", "--rm", "parity", "true"),
            "own code": run("run", "--rm", "parity", "sh", "-c", "echo out; echo err >&2; exit 42"),
            "no program": run("run", "--rm", "parity", "nothing-here"),
            "no path": run("run", "--rm", "parity", "/nothing/here"),
            "not executable": run("run", "--rm", "parity", "/etc/passwd"),
            "a directory": run("run", "--rm", "parity", "/etc"),
            "killed": run("run", "--rm", "parity", "sh", "-c", "kill -9 $$"),
            "terminated": run("run", "--rm", "parity", "sh", "-c", "kill -TERM $$; sleep 1"),
            "no image": run("run", "--rm", "--pull", "never", "not-an-image", "true"),
            "bad flag": run("run", "--rm", "--memory", "1k", "parity", "true"),
            "no user": run("run", "--rm", "-u", "nosuchuser", "parity", "true"),
            "no group": run("run", "--rm", "-u", "0:nosuchgroup", "parity", "true"),
            "work dir is made": run("run", "--rm", "-w", "/made/here", "parity", "pwd"),
            "work dir is a file": run("run", "--rm", "-w", "/etc/passwd", "parity", "pwd"),
            "input": run("run", "--rm", "-i", "parity", "cat", input="typed\n"),
        }

    pair.same(script)


def test_state_after_a_failed_start(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.create("box", Cmd=["nothing-here"])
        started = engine.post("/containers/box/start")
        state = engine.get("/containers/box/json")["body"]["State"]
        listed = engine.get("/containers/json", all=1)["body"][0]
        return [started, state, listed["State"], listed["Status"]]

    pair.same(script)


def test_update(pair: Pair) -> None:
    changes: list[dict[str, object]] = [
        {},
        {"Memory": 32 << 20},
        {"Memory": 32 << 20, "MemorySwap": 64 << 20},
        {"Memory": 1},
        {"CpuShares": 100},
        {"RestartPolicy": {"Name": "always"}},
        {"RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 3}},
        {"RestartPolicy": {"Name": "sometimes"}},
        {"RestartPolicy": {"Name": "always", "MaximumRetryCount": 3}},
        {"RestartPolicy": {"Name": "no"}},
        {"PidsLimit": 20},
        {"PidsLimit": -1},
        {"NanoCPUs": 500_000_000},
        {"CpuPeriod": 100_000, "CpuQuota": 50_000},
        {"CpusetCpus": "0"},
        {"CpusetCpus": "x"},
    ]

    def script(engine: Engine) -> object:
        engine.start("box", Cmd=["sleep", "60"])
        told = [engine.post("/containers/box/update", change) for change in changes]
        told.append(engine.get("/containers/box/json")["body"]["HostConfig"])
        engine.start("passing", Cmd=["sleep", "60"], host={"AutoRemove": True})
        told.append(engine.post("/containers/passing/update", {"RestartPolicy": {"Name": "always"}}))
        return told

    pair.same(
        script,
        *HOST_CONFIG,
        *NOT_PRIVILEGED,
        *DEFAULT_NETWORK,
        Difference("$(7).body.message", "invalid restart policy 'sometimes'", "invalid restart policy: *", NEWER),
        Difference("$(8).body.message", "maximum retry count cannot *", "invalid restart policy: *", NEWER),
    )


def test_signals_to_a_paused_container(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        answers: dict[str, object] = {}
        for stop_signal in ("", "SIGTERM", "SIGUSR1"):
            config = {"Cmd": ["sleep", "60"], **({"StopSignal": stop_signal} if stop_signal else {})}
            for signal in ("KILL", "TERM", "USR1", "WINCH"):
                name = f"box{stop_signal}-{signal}"
                engine.start(name, **config)  # type: ignore[arg-type]
                engine.http("POST", f"/containers/{name}/pause")
                answers[name] = engine.post(f"/containers/{name}/kill", signal=signal)
        return [answers, _settled(engine, list(answers))]

    def _settled(engine: Engine, names: list[str]) -> dict[str, str]:
        """KILL ends even PID 1, which ignores the others; dockerd thaws them a moment later, one moment for all."""
        for name in names:
            if name.endswith("KILL"):
                engine.wait(name)
        deadline = time.monotonic() + 1
        while True:
            seen = {name: engine.get(f"/containers/{name}/json")["body"]["State"]["Status"] for name in names}
            if time.monotonic() > deadline:
                return seen
            time.sleep(0.05)

    pair.same(script)


def test_prune(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        engine.start("up", Cmd=["sleep", "60"], Labels={"keep": "1"})
        engine.create("made", Labels={"keep": "1"})
        engine.create("other")
        kept = engine.post("/containers/prune", filters='{"label!": ["keep"]}')
        old = engine.post("/containers/prune", filters='{"until": ["24h"]}')
        bad = engine.post("/containers/prune", filters='{"until": ["when"]}')
        odd = engine.post("/containers/prune", filters='{"name": ["x"]}')
        rest = engine.post("/containers/prune")
        return [kept, old, bad, odd, rest, [c["Names"] for c in engine.get("/containers/json", all=1)["body"]]]

    pair.same(script, refused("$(2).status", 500, 400))
