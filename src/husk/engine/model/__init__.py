"""The records of the engine, and rules about them that need nothing but their arguments.

Every room of the engine may import this one, and it imports none of them: `container` with `container_config`, `image`,
`network` and `volume` are what the store holds, all frozen; `clock`,
`filters`, `signals` and `events` are the words that all rooms have in common. Nothing here reads a file, calls the
system or waits, except that `events` hands out what was published.
"""
