"""The life of a container.

    create    created   a record in the store; data-root/containers/<id>/ holds the (empty) writable layer
    start     running   + overlay mounted on .../rootfs, hosts/hostname/resolv.conf and the log beside it,
                        exec-root/containers/<id>/ (the bundle: OCI config, monitor's pid, attach socket, exit file),
                        a network sandbox, a cgroup, conmon and the process below it
    (ends)    exited    record with exit code; mount, bundle, sandbox and cgroup released; writable layer and log stay
    remove    gone      record deleted first, then the directory

Two frozen values tell where a container is, and `states` has every transition between them. The record's `State`, which
the store and clients know, goes by these steps; a start that fails leaves it where it was, or waits for the next try:

    created, exited, restarting   start     running
    running                       pause     paused
    paused                        thaw      running
    running, paused               end       exited, or restarting if the policy wants another run
    restarting                    give up   exited
    created, exited, dead         remove    removing, and gone

The `Life`, which memory alone has, is what there is of it on the host:

    Settled     no process, nothing but its own files      a start makes it Unsettled
    Unsettled   perhaps mounts, networks, a bundle         the process begins: Alive; a release: one of the others
    Alive       a process                                  its end: Unsettled, until it is released
    Uncleared   bundle and control group wait for later    cleared: Settled
    Discarded   not even files                             its record goes
    Waiting     a timer for the next run, and one of these  the run, a stop: the timer goes, the other stays

Records are frozen. Work is on an instance's draft, which the index writes; what is written is believed, and nothing
else but the results of health checks. `lifecycle`, `pause`, `stop` and `remove` alone change the status, under the
container's lock; a change is in the store before anyone is told, except for ends and removals on a full disk, which are
written when there is room. `restore` puts the picture right after the daemon was away: it adopts containers whose
conmon lives, records the exits of those that ended, and releases what no record owns.

This room decides and records. What happens on the host is done by the drivers below it, `husk.runtime.assembly` first
of all; `drivers` says what is needed of them, so that tests run on doubles (`tests/support/drivers.py`).

    states                      where a container is, and the transitions; pure
    config                      what a client says about a container, and what the runtime is told of it; pure
    all containers              index (by id and name, each with what only memory holds), listing
    verbs                       create, start, stop, pause, remove, update, connect, commit, copy, exec, attach, stats,
                                top
    life without a client       lifecycle (ends and next runs), health, oom, restore
    what is held while it runs  mounts, release, clearing (what waits until a crowd has gone)
    for the edge                service
    how they are put together   parts

The import contract in `pyproject.toml` says which of these builds on which; docs/design/run.md names the files that
`docker run` goes through.
"""
