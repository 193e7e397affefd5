"""A container, and all that can be done to it.

What needs msgspec or tarfile is loaded with the first call that needs it: a list of containers is there at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from husk.client.console import Console
from husk.client.ending import ending, read
from husk.client.image import Image
from husk.client.logs import Output, logs
from husk.client.moments import Moment
from husk.client.names import split_tag
from husk.client.thing import Thing
from husk.errors import NotFound, NotModified

if TYPE_CHECKING:
    from husk.client.container_parts import ContainerParts
    from husk.client.execs import Exec
    from husk.client.files import Files
    from husk.client.path_stat import PathStat
    from husk.client.ports import Port
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
        """The name."""
        return str(self.attrs.get("Name") or (self.attrs.get("Names") or [""])[0]).removeprefix("/")

    @property
    def status(self) -> str:
        """The state when it was last asked: created, running, paused, restarting, exited, dead or removed."""
        state = self.attrs.get("State", "")
        return str(state["Status"] if isinstance(state, dict) else state)

    @property
    def image(self) -> str:
        """The image as it was named."""
        config = self.attrs.get("Config")
        return str((config or self.attrs).get("Image", ""))

    @property
    def labels(self) -> dict[str, str]:
        """The labels, of the image too."""
        return dict((self.attrs.get("Config") or self.attrs).get("Labels") or {})

    @property
    def ports(self) -> dict[str, list[tuple[str, int]]]:
        """The ports in the container, each with the addresses and ports of the host that lead to it."""
        found = (self.attrs.get("NetworkSettings") or {}).get("Ports") or {}
        return {port: [(each["HostIp"], int(each["HostPort"])) for each in to or ()] for port, to in found.items()}

    @property
    def ip(self) -> str:
        """The address on the first of its networks that gave it one; empty without."""
        networks = (self.attrs.get("NetworkSettings") or {}).get("Networks") or {}
        return next((str(each["IPAddress"]) for each in networks.values() if each.get("IPAddress")), "")

    def port(self, port: int | str) -> Port:
        """Find one of its ports, where this program reaches it: as it is published, or at the container's own address.

        :param port: the port in the container: `80`, `"53/udp"`.
        :returns: the port, with its address.
        :raises NotFound: it is not published, and the container's own address cannot be reached from here.
        """
        return self._parts.port(port, self.ports, self.ip)

    @property
    def files(self) -> Files:
        """Its files, by their paths."""
        return self._parts.files()

    def _columns(self) -> dict[str, str]:
        ports = self._parts.shown(self.ports)
        return {"name": self.name, "status": self.status, "image": self.image, "ports": ports, "id": self.short_id}

    async def reload(self) -> None:
        """Ask the engine again, and put its answer into `attrs`."""
        self.attrs = await self._calls.get(f"{self._path}/json")

    # its life

    async def start(self) -> None:
        """Start the process. A container that runs already is left as it is.

        :raises InvalidParameter: the command cannot be run.
        :raises Conflict: something that it needs is in use, for example a port.
        """
        await self._unless_done(self._calls.post(f"{self._path}/start"))
        await self._look()

    async def stop(self, timeout: int | None = None, signal: str | None = None) -> None:
        """Ask the process to end, and kill it if it does not. A container that has ended is left as it is.

        :param timeout: seconds until it is killed; what the container says if None, or 10.
        :param signal: the signal that asks; what the container says if None, or `TERM`.
        """
        await self._unless_done(self._calls.post(f"{self._path}/stop", None, {"t": timeout, "signal": signal}))
        await self._look()

    async def restart(self, timeout: int | None = None, signal: str | None = None) -> None:
        """Stop the container, then start it.

        :param timeout: seconds until it is killed, as for `stop`.
        :param signal: the signal that asks it to end; its own if None.
        """
        await self._calls.post(f"{self._path}/restart", None, {"t": timeout, "signal": signal})
        await self._look()

    async def kill(self, signal: str | int | None = None) -> None:
        """Send a signal to the process.

        :param signal: the signal, by its name or number; `KILL` if None.
        :raises Conflict: the container does not run.
        :raises InvalidParameter: there is no such signal.
        """
        await self._calls.post(f"{self._path}/kill", None, {"signal": signal})

    async def pause(self) -> None:
        """Hold all processes of the container.

        :raises Conflict: the container does not run, or is paused.
        """
        await self._calls.post(f"{self._path}/pause")
        await self._look()

    async def unpause(self) -> None:
        """Let the processes of a paused container go on.

        :raises Conflict: the container is not paused.
        """
        await self._calls.post(f"{self._path}/unpause")
        await self._look()

    async def wait(self, condition: str = "not-running") -> int:
        """Wait for the end of the container.

        :param condition: `not-running`, `next-exit`, or `removed`.
        :returns: the exit code.
        """

        return read(await self._calls.post(f"{self._path}/wait", None, {"condition": condition})).code

    async def wait_for(
        self,
        *,
        port: int | None = None,
        log: str = "",
        exec: Command = None,
        health: bool = False,
        timeout: float = 60.0,
    ) -> None:
        """Wait until the container is ready: until all that is asked for holds.

        await box.wait_for(port=80, log="ready to serve", timeout=10)

        :param port: a port of the container that takes connections.
        :param log: a pattern that a line of its log matches.
        :param exec: a command that ends with 0 in it.
        :param health: its health test succeeds.
        :param timeout: seconds, after which it is given up.
        :raises Unavailable: it has ended, or is not ready in time; the message has the last lines that it wrote.
        """
        await self._parts.until_ready(port=port, log=log, exec=exec, health=health, timeout=timeout)

    @asynccontextmanager
    async def waiting(self, condition: str = "not-running") -> AsyncIterator[Callable[[], Awaitable[int]]]:
        """Wait for the end without missing it: the engine waits from the beginning of the block on.

        async with box.waiting("removed") as ended:
            await box.start()
            print(await ended())

        :param condition: `not-running`, `next-exit`, or `removed`.
        :returns: a call that waits for the exit code.
        """

        async with ending(self._calls, self._path, condition) as ended:

            async def code() -> int:
                return (await ended()).code

            yield code

    async def remove(self, *, force: bool = False, volumes: bool = False, link: bool = False) -> None:
        """Remove the container.

        :param force: kill it first, if it runs.
        :param volumes: remove its volumes without a name, too.
        :param link: remove a link to another container in place of the container.
        :raises Conflict: the container runs, and `force` is not given.
        """
        await self._calls.delete(self._path, {"force": force, "v": volumes, "link": link})

    async def rename(self, name: str) -> None:
        """Give the container another name.

        :param name: the name.
        :raises Conflict: another container has it.
        """
        await self._calls.post(f"{self._path}/rename", None, {"name": name})
        await self.reload()

    async def update(self, **limits: Any) -> list[str]:
        """Change limits of the container while it runs.

        :param limits: limits in the API's words: `Memory`, `NanoCpus`, `PidsLimit`, `RestartPolicy` and so on.
        :returns: warnings.
        :raises InvalidParameter: a limit makes no sense; nothing was changed.
        """
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
        details: bool = False,
    ) -> Output:
        """Read the output that the container has written.

        :param stdout: read its standard output.
        :param stderr: read its standard error.
        :param follow: go on with the output to come, until the container ends.
        :param tail: the number of lines to begin with, counted from the end; `all` for all.
        :param since: the moment of the first line: a time, seconds since 1970, or a length before now, as `10m`.
        :param until: the moment of the last line, in the same forms.
        :param timestamps: begin each line with its time.
        :param details: begin each line with what the log driver was told to note of the container.
        :returns: the output: await all of it, or iterate over it.
        """

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
            details=details,
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
        """Connect to the input and output of the process from now on.

        :param stdin: connect to its input.
        :param stdout: connect to its standard output.
        :param stderr: connect to its standard error.
        :param logs: begin with the output that it has written before.
        :param detach_keys: the keys that end the connection, as `ctrl-p,ctrl-q`.
        :returns: both directions.
        """

        query = {"stream": True, "stdin": stdin, "stdout": stdout, "stderr": stderr, "logs": logs}
        taken = await self._calls.upgrade(f"{self._path}/attach", None, {**query, "detachKeys": detach_keys})
        tty = bool((self.attrs.get("Config") or {}).get("Tty"))
        console = Console(*taken, multiplexed=not tty, resize=self.resize)
        async with console:
            yield console

    async def resize(self, height: int, width: int) -> None:
        """Set the size of the terminal.

        :param height: lines.
        :param width: characters of a line.
        """
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
        timeout: float | None = None,
        max_output: int | None = None,
        check: bool = False,
    ) -> Exec:
        """Describe another process in the container. It starts when it is awaited, read, opened or started.

        :param command: the command and its arguments; a single string is taken apart as a shell does it.
        :param environment: variables beside those of the container: `{"NAME": "value"}`, or `["NAME=value"]`.
        :param user: the user, as `name`, `name:group` or numbers; that of the container if empty.
        :param working_dir: the directory that it starts in; that of the container if empty.
        :param tty: give it a terminal.
        :param privileged: give it all capabilities.
        :param input: bytes that it reads.
        :param stdin: connect to its input, to write to it by `open`.
        :param detach_keys: the keys that end the connection, as `ctrl-p,ctrl-q`.
        :param timeout: seconds, after which it is killed; dockerd cannot end it, and leaves it.
        :param max_output: the number of bytes that its result has of each stream; all if None.
        :param check: raise CommandFailed if it does not end well.
        :returns: the process.
        """
        return self._parts.exec(
            input,
            stdin,
            command,
            limits=(timeout, max_output, check),
            environment_of=environment,
            user=user,
            working_dir=working_dir,
            tty=tty,
            privileged=privileged,
            detach_keys=detach_keys,
        )

    # its files

    async def put(self, path: str, data: bytes | str | Path, *, mode: int = 0o644) -> None:
        """Write a file at a path; directories that are missing on the way are made.

        :param path: the absolute path in the container.
        :param data: the content, or the `Path` of a file or directory of the host.
        :param mode: the permissions of a file that is given by its content.
        """
        await self._parts.put(path, data, mode)

    async def get(self, path: str) -> bytes:
        """Read a file.

        :param path: the path in the container.
        :returns: the content.
        :raises NotFound: there is nothing at that path.
        """
        return await self._parts.get(path)

    async def stat(self, path: str) -> PathStat:
        """Describe the file, directory or link at a path.

        :param path: the path in the container.
        :returns: the description.
        :raises NotFound: there is nothing at that path.
        """
        return await self._parts.stat(path)

    @property
    def _parts(self) -> ContainerParts:
        # A door: tarfile and msgspec, which a short command would wait longer for than for its answer.
        from husk.client.container_parts import ContainerParts

        return ContainerParts(self, self._calls)

    async def put_archive(
        self,
        path: str,
        archive: bytes | AsyncIterable[bytes],
        *,
        copy_uid_gid: bool = False,
        no_overwrite_dir_non_dir: bool = False,
    ) -> None:
        """Unpack a tar archive into a directory.

        :param path: the directory in the container.
        :param archive: the archive, packed or not, in one piece or in several.
        :param copy_uid_gid: give all of it to the user that the container runs as, where it has one.
        :param no_overwrite_dir_non_dir: refuse to put a file in the place of a directory, or a directory in that of a
            file.
        :raises NotFound: there is no such directory.
        """
        query = {
            "path": path,
            "copyUIDGID": copy_uid_gid or None,
            "noOverwriteDirNonDir": no_overwrite_dir_non_dir or None,
        }
        await self._calls.put(f"{self._path}/archive", archive, query)

    async def get_archive(self, path: str) -> AsyncIterator[bytes]:
        """Pack a file or directory into a tar archive.

        :param path: the path in the container.
        :returns: the archive, piece by piece.
        :raises NotFound: there is nothing at that path.
        """
        async with self._calls.answer("GET", f"{self._path}/archive", {"path": path}) as response:
            async for piece in response.pieces():
                yield piece

    async def export(self) -> AsyncIterator[bytes]:
        """Pack all files of the container into a tar archive.

        :returns: the archive, piece by piece.
        """
        async with self._calls.answer("GET", f"{self._path}/export") as response:
            async for piece in response.pieces():
                yield piece

    async def diff(self) -> list[dict[str, Any]]:
        """List the paths that differ from the image.

        :returns: the API's documents: `Path`, and `Kind` 0 (changed), 1 (added) or 2 (deleted).
        """
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
        """Make an image of the container. A call that is cancelled leaves none behind.

        :param tag: the name of the image, as `repository:tag`; none if empty.
        :param message: a text for its history.
        :param author: the author, for its history.
        :param pause: hold the processes meanwhile.
        :param changes: instructions of a Dockerfile, such as `CMD ["sh"]`.
        :param config: settings of the image, as the API has them.
        :returns: the image.
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
        """List the processes of the container.

        :param ps_args: options for `ps`; `-ef` if None.
        :returns: the API's document: `Titles` and `Processes`.
        :raises Conflict: the container does not run.
        """
        found: dict[str, Any] = await self._calls.get(f"{self._path}/top", {"ps_args": ps_args})
        return found

    async def stats(self) -> AsyncIterator[Stats]:
        """Measure the use of resources about once a second.

        :returns: the samples, one by one.
        """
        async for sample in self._calls.lines("GET", f"{self._path}/stats", {"stream": True}):
            yield self._parts.stats(sample)

    async def stats_now(self, one_shot: bool = False) -> Stats:
        """Measure the use of resources once.

        :param one_shot: do not wait for a second sample to compare with; `cpu_percent` is 0 then.
        :returns: the sample.
        """
        query = {"stream": False, "one-shot": one_shot}
        return self._parts.stats(await self._calls.get(f"{self._path}/stats", query))

    async def _look(self) -> None:
        """Know what is true after a change. One that goes by itself may have gone already."""
        known = self.attrs
        listed = isinstance(known.get("State"), str)
        try:
            await self.reload()
        except NotFound:
            self.attrs = {**known, "State": "removed" if listed else {"Status": "removed", "Running": False}}
            return
        if listed:
            # What a list has told stays in its words, but for its sentence about the state.
            rest = {name: value for name, value in known.items() if name != "Status"}
            self.attrs = {**rest, "State": self.status, "NetworkSettings": self.attrs.get("NetworkSettings") or {}}
        elif "Warnings" in known:
            self.attrs = {"Warnings": known["Warnings"], **self.attrs}

    async def _unless_done(self, call: Awaitable[Any]) -> None:
        """Await a call that asks for a state; NotModified, for a container already in that state, is no failure."""
        try:
            await call
        except NotModified:
            return

    @property
    def _path(self) -> str:
        return f"/containers/{self.id}"


async def removed(container: Container) -> None:
    """Remove a container whatever it does, with its volumes, if it is still there."""
    try:
        await container.remove(force=True, volumes=True)
    except NotFound:
        return
