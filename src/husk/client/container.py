"""A container, and all that can be done to it.

What its calls give and take is loaded with the first call that needs it: a list of containers is there at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from husk.client.image import Image
from husk.client.names import split_tag
from husk.client.thing import Thing
from husk.errors import NotFound, NotModified

if TYPE_CHECKING:
    from pathlib import Path

    from husk.client.console import Console
    from husk.client.execs import Exec
    from husk.client.logs import Output
    from husk.client.moments import Moment
    from husk.client.path_stat import PathStat
    from husk.client.spec import Command
    from husk.client.stats import Stats


class Container(Thing):
    """A container of an engine.

    async with engine.container("busybox", ["sleep", "60"]) as box:
        print(box.name, box.status, (await box.exec(["ls"])).stdout)
    """

    def __repr__(self) -> str:
        return f"<Container {self.short_id} {self.name}>"

    # what is known

    @property
    def name(self) -> str:
        return str(self.attrs.get("Name") or (self.attrs.get("Names") or [""])[0]).removeprefix("/")

    @property
    def status(self) -> str:
        """created, running, paused, restarting, exited or dead, when it was last asked."""
        state = self.attrs.get("State", "")
        return str(state["Status"] if isinstance(state, dict) else state)

    @property
    def image(self) -> str:
        """The image as it was named."""
        config = self.attrs.get("Config")
        return str(config["Image"] if config else self.attrs.get("Image", ""))

    @property
    def labels(self) -> dict[str, str]:
        return dict((self.attrs.get("Config") or self.attrs).get("Labels") or {})

    @property
    def ports(self) -> dict[str, list[tuple[str, int]]]:
        """Ports in the container, each with the addresses and ports of the host that lead to it."""
        found = (self.attrs.get("NetworkSettings") or {}).get("Ports") or {}
        return {port: [(each["HostIp"], int(each["HostPort"])) for each in to or ()] for port, to in found.items()}

    @property
    def ip(self) -> str:
        """Its address on the first of its networks that gave it one."""
        networks = (self.attrs.get("NetworkSettings") or {}).get("Networks") or {}
        return next((str(each["IPAddress"]) for each in networks.values() if each.get("IPAddress")), "")

    async def reload(self) -> None:
        """Ask the engine again."""
        self.attrs = await self._calls.get(f"{self._path}/json")

    # its life

    async def start(self) -> None:
        """Let its process run; that it runs already is no failure."""
        await self._unless_done(self._calls.post(f"{self._path}/start"))

    async def stop(self, timeout: int | None = None, signal: str | None = None) -> None:
        """Ask it to end; kill it after `timeout` seconds (else as the container says, or 10)."""
        await self._unless_done(self._calls.post(f"{self._path}/stop", None, {"t": timeout, "signal": signal}))

    async def restart(self, timeout: int | None = None) -> None:
        """As `stop`, then `start`."""
        await self._calls.post(f"{self._path}/restart", None, {"t": timeout})

    async def kill(self, signal: str | int | None = None) -> None:
        """Send it a signal: `KILL`, unless another is said."""
        await self._calls.post(f"{self._path}/kill", None, {"signal": signal})

    async def pause(self) -> None:
        """Hold all its processes."""
        await self._calls.post(f"{self._path}/pause")

    async def unpause(self) -> None:
        """Let its processes go on."""
        await self._calls.post(f"{self._path}/unpause")

    async def wait(self, condition: str = "not-running") -> int:
        """Its exit code, as soon as it is `not-running`, at its `next-exit`, or when it is `removed`."""
        from husk.client.ending import read

        return read(await self._calls.post(f"{self._path}/wait", None, {"condition": condition})).code

    @asynccontextmanager
    async def waiting(self, condition: str = "not-running") -> AsyncIterator[Callable[[], Awaitable[int]]]:
        """As `wait`, for who must not miss it: inside the block the engine waits already, the call gives the code.

        async with box.waiting("removed") as ended:
            await box.start()
            print(await ended())
        """
        from husk.client.ending import ending

        async with ending(self._calls, self._path, condition) as ended:

            async def code() -> int:
                return (await ended()).code

            yield code

    async def remove(self, *, force: bool = False, volumes: bool = False, link: bool = False) -> None:
        """`force` ends it first; `volumes` takes those along that have no name."""
        await self._calls.delete(self._path, {"force": force, "v": volumes, "link": link})

    async def rename(self, name: str) -> None:
        """Give it another name; Conflict where another container has it."""
        await self._calls.post(f"{self._path}/rename", None, {"name": name})
        await self.reload()

    async def update(self, **limits: Any) -> list[str]:
        """Change limits in the API's words: `Memory=…`, `NanoCpus=…`, `RestartPolicy=…`; warnings, if any."""
        return list((await self._calls.post(f"{self._path}/update", limits)).get("Warnings") or [])

    # what it writes and reads

    def logs(
        self,
        *,
        stdout: bool = True,
        stderr: bool = True,
        follow: bool = False,
        tail: int | str = "all",
        since: Moment = None,
        until: Moment = None,
        timestamps: bool = False,
    ) -> Output:
        """Return the output that the container has written; with `follow` also the output to come."""
        from husk.client.logs import logs

        return logs(
            self._calls,
            f"{self._path}/logs",
            stdout=stdout,
            stderr=stderr,
            follow=follow,
            tail=tail,
            since=since,
            until=until,
            timestamps=timestamps,
        )

    @asynccontextmanager
    async def attach(
        self,
        *,
        stdin: bool = False,
        stdout: bool = True,
        stderr: bool = True,
        logs: bool = False,
        detach_keys: str | None = None,
    ) -> AsyncIterator[Console]:
        """Its input and output from now on; with `logs` also what it wrote before."""
        from husk.client.console import Console

        query = {"stream": True, "stdin": stdin, "stdout": stdout, "stderr": stderr, "logs": logs}
        taken = await self._calls.upgrade(f"{self._path}/attach", None, {**query, "detachKeys": detach_keys})
        tty = bool((self.attrs.get("Config") or {}).get("Tty"))
        console = Console(*taken, multiplexed=not tty, resize=self.resize)
        async with console:
            yield console

    async def resize(self, height: int, width: int) -> None:
        """The size of its terminal in characters."""
        await self._calls.post(f"{self._path}/resize", None, {"h": height, "w": width})

    def exec(
        self,
        command: Command,
        *,
        environment: Mapping[str, str | None] | Sequence[str] = (),
        user: str = "",
        working_dir: str = "",
        tty: bool = False,
        privileged: bool = False,
        input: bytes | None = None,
        stdin: bool = False,
        detach_keys: str = "",
    ) -> Exec:
        """Another process in it. It starts when it is awaited, read or opened."""
        from husk.client import execs

        document = execs.document(
            command,
            environment_of=environment,
            user=user,
            working_dir=working_dir,
            tty=tty,
            privileged=privileged,
            stdin=stdin or input is not None,
            detach_keys=detach_keys,
        )
        return execs.Exec(self._calls, self.id, document, input)

    # its files

    async def put(self, path: str, data: bytes | str | Path, *, mode: int = 0o644) -> None:
        """Write a file at an absolute path; directories that are missing on the way are made. A `Path` names a file or
        directory of the host."""
        from husk.client import tars

        if isinstance(data, bytes | str):
            await self.put_archive("/", tars.one_file(path, data, mode=mode))
        else:
            await self.put_archive("/", tars.tree(data, path.strip("/")))

    async def get(self, path: str) -> bytes:
        """The content of a file."""
        from husk.client import tars

        return tars.only_file(b"".join([piece async for piece in self.get_archive(path)]), path)

    async def stat(self, path: str) -> PathStat:
        """Describe the file, directory or link at a path; NotFound if there is nothing."""
        from husk.client.path_stat import HEADER, path_stat

        try:
            headers = await self._calls.head(f"{self._path}/archive", {"path": path})
        except NotFound as error:
            # An answer to HEAD has no body, and so no words.
            error.args = (f"Could not find the file {path} in container {self.name or self.id}",)
            raise
        return path_stat(headers.get(HEADER, ""))

    async def put_archive(
        self,
        path: str,
        archive: bytes | AsyncIterable[bytes],
        *,
        copy_uid_gid: bool = False,
        no_overwrite_dir_non_dir: bool = False,
    ) -> None:
        """Unpack a tar archive into a directory.

        With `copy_uid_gid` all of it belongs to the user that the container runs as, where it has one. With
        `no_overwrite_dir_non_dir` a file does not take the place of a directory, nor a directory that of a file.
        """
        query = {
            "path": path,
            "copyUIDGID": copy_uid_gid or None,
            "noOverwriteDirNonDir": no_overwrite_dir_non_dir or None,
        }
        await self._calls.put(f"{self._path}/archive", archive, query)

    async def get_archive(self, path: str) -> AsyncIterator[bytes]:
        """A file or directory as a tar archive."""
        async with self._calls.answer("GET", f"{self._path}/archive", {"path": path}) as response:
            async for piece in response.pieces():
                yield piece

    async def export(self) -> AsyncIterator[bytes]:
        """All its files as a tar archive."""
        async with self._calls.answer("GET", f"{self._path}/export") as response:
            async for piece in response.pieces():
                yield piece

    async def diff(self) -> list[dict[str, Any]]:
        """List the paths that differ from the image: `Path`, and `Kind` 0 (changed), 1 (added) or 2 (deleted)."""
        return list(await self._calls.get(f"{self._path}/changes") or [])

    async def commit(
        self,
        tag: str = "",
        *,
        message: str = "",
        author: str = "",
        pause: bool = True,
        changes: Sequence[str] = (),
        config: Mapping[str, Any] | None = None,
    ) -> Image:
        """Make an image of it. `changes` are instructions of a Dockerfile, `config` the API's own document.

        Who is cancelled meanwhile leaves none behind.
        """
        repository, version = split_tag(tag)
        query = {
            "container": self.id,
            "repo": repository,
            "tag": version,
            "comment": message,
            "author": author,
            "pause": pause,
            "changes": list(changes),
        }
        return await self._calls.made(self._commit(config, query), self._uncommit)

    async def _commit(self, config: Mapping[str, Any] | None, query: Mapping[str, object]) -> Image:
        made = await self._calls.post("/commit", config, query)
        return Image(self._calls, await self._calls.get(f"/images/{made['Id']}/json"))

    async def _uncommit(self, image: Image) -> None:
        await self._calls.delete(f"/images/{image.id}", {"force": True})

    # what goes on in it

    async def top(self, ps_args: str | None = None) -> dict[str, Any]:
        """Its processes: `Titles` and `Processes`."""
        found: dict[str, Any] = await self._calls.get(f"{self._path}/top", {"ps_args": ps_args})
        return found

    async def stats(self) -> AsyncIterator[Stats]:
        """Yield the use of resources about once a second; `attrs` of each is the engine's own document."""
        from husk.client.stats import stats

        async for sample in self._calls.lines("GET", f"{self._path}/stats", {"stream": True}):
            yield stats(sample)

    async def stats_now(self, one_shot: bool = False) -> Stats:
        """Return the use of resources; `one_shot` does not wait for a second sample to compare with."""
        from husk.client.stats import stats

        query = {"stream": False, "one-shot": one_shot}
        return stats(await self._calls.get(f"{self._path}/stats", query))

    async def _unless_done(self, call: Awaitable[Any]) -> None:
        """Await a call that asks for a state; NotModified, for a container already in that state, is no failure."""
        try:
            await call
        except NotModified:
            return

    @property
    def _path(self) -> str:
        return f"/containers/{self.id}"
