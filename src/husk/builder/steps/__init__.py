"""Runs the processes of a build (`operations.Exec`), each in a container that nobody sees.

A step is a container as `docker run` makes one, with the same filter of system calls, capabilities, masked paths,
control groups and networks. It has an id, and a record in memory that drivers and networks are told of it with. It has
no record in the store, no name, no monitor and no log: it lives as long as somebody waits for it.

    run         the life of a step: what it needs is taken, its files are mounted, its process runs, all is given back;
                meanwhile a runtime is loaded for the next step
    plan        what the runtime is told (pure)
    mounts      what is mounted where, and which file systems come out
    cache_mounts    directories that outlive steps, for the caches of compilers and package managers
    platforms   can this host run programs of a platform? (pure)

What is on the host meanwhile: see `runtime/assembly/step.py`. A daemon that starts after a crash finds bundles, mounts
and directories that belong to no container, ends what runs in them, and removes them (`containers/restore.py`).
"""
