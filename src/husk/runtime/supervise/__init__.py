"""The processes that keep a container's streams and exit status, and the connections to them.

What runs a container or an exec gives the engine the same thing, whoever keeps it (`Supervised` in
`husk.engine.containers.drivers`): its process, the process that keeps its streams, a way to attach, and its end.

conmon      the monitor of a container of a daemon, which lives on while no daemon runs; `oom_watches` let it tell of
            the OOM killer
console     a connection to the streams that conmon serves
exec        one more process in a container, with a monitor of its own
keeper      one process for all containers that somebody waits for, with `pipes` for their streams
foreground  the runtime's own `run` for steps of builds, started ahead (`begun`); `stdio` are its streams
"""
