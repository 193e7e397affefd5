"""State machines, policies and events of containers, images, networks and volumes: the core, which knows no wing.

The engine decides and records. It knows no HTTP and makes no system calls: it drives the host through `husk.runtime`,
`husk.storage`, `husk.registry` and `husk.network`, and is usable on its own:

    async with husk.composition.Engine.open(config) as engine:
        created = await engine.containers.create(
            "", ContainerConfig(image="busybox", cmd=["true"]), HostConfig(), {}, ""
        )
        await engine.containers.start(created.container.id)

The rooms, from the bottom up; each imports only those below it, and neighbours do not know each other:

    model                              records and pure rules that all rooms share
    images | networks | volumes | logs what a container starts from, where it is reached, what it keeps, what it writes
    containers                         a process with a life

`opening` puts them together, on `base` (the records, this host, its drivers): a `parts` module per room with several
parts. What one needs from above is handed to it there, as a function or a small interface. The whole, as the edge sees
it, is `husk.composition`. `migrations` bring records of earlier releases up, `reloaded` tells what a reload changed.
`system` answers for the daemon as a whole, `checkup` and `repair` look at a data root that may be damaged.
"""
