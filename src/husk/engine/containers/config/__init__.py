"""A container's configuration: what a client says about it, and what the runtime and the container are told of it.

    what a client says      validate, with limits (resources, devices, kernel settings), security (`--security-opt`) and
                            mounts (`Binds`, `Mounts`, `Volumes`, `VolumesFrom`)
    what it becomes         merge: completed from its image, the daemon's settings and this host
    what the runtime gets   spec for the container, exec_spec for another process in it
    what the container sees network_files: /etc/hosts and /etc/resolv.conf
    what follows from it    restart_policy: whether a container that ended starts again, and when

All of it is pure: records and facts about the host in, records and texts out. Nothing here changes a container, and
nothing imports the rest of `containers` but the interfaces of its drivers.
"""
