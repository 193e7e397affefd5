"""What containers, images and networks are and do: state machines, policies, events.

The engine knows no HTTP and no system calls. It drives the host through `husk.runtime`, `husk.storage`, `husk.registry`
and `husk.network`, and is usable on its own:

    async with Engine.open(config) as engine:
        created = await engine.containers.create("", Config(image="busybox", cmd=["true"]), HostConfig(), {}, "")
        await engine.containers.start(created.container.id)

Rooms, each knowing only those before it: `model` (records and pure rules), `images` (what a container starts from),
`networks` (where it is reached), `volumes` (what outlives it) and `logs` (what it said), `containers` (a process with a
life), `services` (containers that are kept as declared). `engine` puts them together.
"""
