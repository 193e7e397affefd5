"""A log shipper: every line that containers write, as JSON lines, from where the last run left off.

    sudo python examples/logs.py unix:///run/husk.sock shipped.jsonl

Containers that start later are followed too. A label `ship=no` leaves one out. To send lines elsewhere than to a file,
give `Shipper` another `sink`.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import husk

Sink = Callable[[Mapping[str, str]], None]


class Shipper:
    """Follows all containers of an engine. `seen` tells, per container, the time of the last line that was shipped."""

    def __init__(self, engine: husk.Client, sink: Sink, seen: dict[str, str]) -> None:
        self._engine = engine
        self._sink = sink
        self.seen = seen

    async def run(self) -> None:
        """Ship until it is cancelled."""
        begun, followed = time.time(), set[str]()
        async with asyncio.TaskGroup() as following:
            for container in await self._engine.containers.list():
                self._follow(following, container, followed)
            # Who started while the others were listed is told of here; nobody is followed twice.
            async for event in self._engine.events(since=begun, filters={"type": "container", "event": "start"}):
                try:
                    self._follow(following, await self._engine.containers.get(event.id), followed)
                except husk.errors.NotFound:
                    continue  # it is gone already, with its log

    def _follow(self, following: asyncio.TaskGroup, container: husk.Container, followed: set[str]) -> None:
        if container.id not in followed and container.labels.get("ship") != "no":
            followed.add(container.id)
            task = following.create_task(self._ship(container))
            task.add_done_callback(lambda _: followed.discard(container.id))

    async def _ship(self, container: husk.Container) -> None:
        since = self.seen.get(container.id)
        try:
            async for line in container.logs(follow=True, timestamps=True, since=since).lines():
                written, _, text = line.partition(" ")
                if since is None or written > since:
                    self._sink({"time": written, "container": container.name, "text": text})
                    self.seen[container.id] = written
        except husk.errors.NotFound:
            return


async def main(address: str, sink: Sink, seen: dict[str, str]) -> None:
    async with husk.connect(address) as engine:
        await Shipper(engine, sink, seen).run()


if __name__ == "__main__":
    notes = Path(f"{sys.argv[2]}.seen")
    seen = json.loads(notes.read_text()) if notes.exists() else {}
    with open(sys.argv[2], "a", buffering=1) as file:
        try:
            asyncio.run(main(sys.argv[1], lambda line: print(json.dumps(line), file=file), seen))
        except KeyboardInterrupt:
            sys.exit(130)
        finally:
            notes.write_text(json.dumps(seen))
