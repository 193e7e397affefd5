"""Run snippets that nobody has read: without a network, on a read-only root, with little memory, time and output.

    sudo python examples/sandbox.py 'echo hello'
    sudo python examples/sandbox.py ':(){ :|:& };:'

Each snippet gets a container of its own, which is gone when it has ended. To run Python instead of a shell:
`Sandbox(engine, image="python:3.13-alpine", interpreter=("python", "-I", "-"))`.
"""

import asyncio
import sys
from collections.abc import Sequence

import husk


class Sandbox:
    """Snippets run in it one per container, as many at once as `at_once` says."""

    def __init__(
        self,
        engine: husk.Client,
        *,
        image: str = "busybox",
        interpreter: Sequence[str] = ("sh",),
        seconds: float = 2.0,
        memory: str = "32m",
        at_once: int = 4,
    ) -> None:
        self._engine = engine
        self._seconds = seconds
        self._free = asyncio.Semaphore(at_once)
        self._spec = husk.ContainerSpec(
            image=image,
            command=interpreter,
            network="none",
            read_only=True,
            tmpfs={"/tmp": "size=4m,mode=1777,noexec,nosuid,nodev"},
            user="65534:65534",
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            memory=memory,
            memory_swap=memory,
            pids_limit=16,
            cpus=1,
            ulimits={"nofile": 64, "core": 0},
            ipc_mode="none",
            hostname="sandbox",
            working_dir="/tmp",
        )

    async def run(self, snippet: str) -> husk.Result:
        """Run a snippet to its end: `timed_out`, `oom_killed` and `truncated` of the result say why it was killed."""
        async with self._free:
            return await self._engine.run(
                self._spec,
                input=snippet.encode(),
                timeout=self._seconds,
                max_output=65536,
                kill_at_max_output=True,
            )


async def main(snippet: str) -> int:
    async with husk.Engine.open() as engine:
        result = await Sandbox(engine).run(snippet)
    print(result.stdout.decode(errors="replace"), end="")
    print(result.stderr.decode(errors="replace"), end="", file=sys.stderr)
    for reason in ("timed_out", "oom_killed", "truncated"):
        if getattr(result, reason):
            print(f"ended: {reason}", file=sys.stderr)
    return result.exit_code


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
