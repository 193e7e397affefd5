"""Logs of containers: what becomes of a line that a container writes.

The life of a line: conmon appends it to `container.log`, whatever the log driver is, and goes on doing so while no
daemon runs. `rotation` puts full files aside (`container.log.<n>`, the higher the later) and has conmon begin a new
one; `runtime/logs/files` knows which files make up the log and in which order. `docker logs` reads them (`read`).
A driver that sends lines elsewhere (`forwarding`, with one module for each protocol: `syslog`, `gelf`, `fluentd`,
`journald`) reads the same files and remembers how far it has come, so neither a dead daemon nor a dead receiver loses
lines that the files still hold.

`options` says what `--log-driver` and `--log-opt` mean, `attributes` what `labels`, `env` and `tag` add to a line.

Who may touch what: conmon alone writes a log, `rotation` alone renames its files; all others read. Of other rooms this
one knows `model` alone, and files and sockets are `husk.runtime`'s.
"""
