"""Where a container is reached: the networks `bridge`, `host` and `none`.

`bridge` gives a container a sandbox of its own (a network namespace with an address on the bridge) while it runs;
`host` and `none` need nothing but a record. `service` connects and disconnects; `husk.network` does the work.
"""
