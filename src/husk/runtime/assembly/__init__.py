"""The host side of a container: what has to lie and to be mounted on the host before a runtime can run it.

The engine decides what a container is to have and records it; the modules here make it, look at it and give it back.
They know paths, mounts and processes, and nothing of records. All of them block: on the event loop use a thread.

    paths           where the things of a container lie: every path comes from here
    root            its file system: the image's layers and its own, by overlayfs
    staging         images and parts of volumes, mounted beside the root for the runtime to bind
    sources         what of the host is bound into it
    shm             a /dev/shm that it shares with others
    network_files   /etc/hosts, /etc/hostname and /etc/resolv.conf
    procfs          what may be mounted on its /proc
    cgroup          its control group: made, measured, emptied, removed
    step, stubs     the file system of a build's step, which has no record
    leftovers       what lies on the host and belongs to nobody any more
"""
