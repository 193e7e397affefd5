"""The life of a container.

    create    created   a record in the store; data-root/containers/<id>/ holds the (empty) writable layer
    start     running   + overlay mounted on .../rootfs, hosts/hostname/resolv.conf and the log beside it,
                        exec-root/containers/<id>/ (the bundle: OCI config, monitor's pid, attach socket, exit file),
                        a network sandbox, a cgroup, conmon and the process below it
    (ends)    exited    record with exit code; mount, bundle, sandbox and cgroup released; writable layer and log stay
    remove    gone      record deleted first, then the directory

Who may move it: `lifecycle`, `pause`, `stop` and `remove` alone change `State.status`, under the container's lock; a
change is in the store before anyone is told, except for ends and removals on a full disk, which are written when there
is room. `restore` puts the picture right after the daemon was away: it adopts containers whose conmon lives, records
the exits of those that ended, and releases what no record owns.

This room decides and records. What happens on the host is done by the drivers below it, `husk.runtime.assembly` first
of all; `drivers` says what is needed of them, so that tests run on doubles (`tests/support/drivers.py`).

    what a client says (pure)   validate, validate_limits, security, mounts; merge with the image and the defaults
    what the runtime is told    spec, exec_spec (pure); network_files (hosts, hostname, resolv.conf)
    all containers              index (by id and name, each with what only memory holds), listing
    verbs                       create (with volumes), start, stop, pause, remove, update, connect, commit, copy, exec,
                                attach, stats, top
    life without a client       lifecycle (ends and next runs), restart (policy), health, oom, restore
    what is held while it runs  roots (mounts), release
    for the edge                service

`docker run` goes through service, validate, merge, create and index, then attach, then lifecycle, start, spec and
network_files, at its end release and remove. The host's side of it is assembly, root, paths, conmon, oci and spec of
`husk.runtime`, and connector of `husk.engine.networks`: 18 files.
"""
