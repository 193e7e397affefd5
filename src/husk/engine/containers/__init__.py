"""The life of a container.

    create    created   a record in the store; data-root/containers/<id>/ holds the (empty) writable layer
    start     running   + overlay mounted on .../rootfs, hosts/hostname/resolv.conf and the log beside it,
                        exec-root/containers/<id>/ (the bundle: OCI config, monitor's pid, attach socket, exit file),
                        a network sandbox, a cgroup, conmon and the process below it
    (ends)    exited    record with exit code; mount, bundle, sandbox and cgroup released; writable layer and log stay
    remove    gone      record deleted first, then the directory

Who may move it: `lifecycle` (with `pause`) alone changes `State.status`, under the container's lock; a change is in the
store before anyone is told, except for ends and removals on a full disk, which are written when there is room.
`restore` puts the picture right after the daemon was away: it adopts containers whose conmon lives, records the exits
of those that ended, and releases what no record owns.

Modules: `model` (the types), `index` (all containers, lookup, the store), `validate` and `create` (a request becomes a
record), `mounts` (pure: what a client means with them), `storing` (volumes for a new container, and their first
content), `staging` (images and volumes mounted while it runs), `plan` (pure: record -> OCI spec), `prepare` with
`files` (what must lie on the host), `places` (where), `lifecycle` with `release`, `companions` (told of starts and
ends: `exec`, `health`), `pause`, `restart` (policy), `logs`, `attach`, `listing` (filters), `restore`, `service` (what
the edge calls). What else can be done with one has a module each: `copy` (files in and out; `roots` keeps them mounted
meanwhile), `changes`, `stats`, `top`, `update`, `prune`.
"""
