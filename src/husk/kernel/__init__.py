"""System calls and kernel interfaces, each behind a few typed functions.

    files       mount, mountinfo, views (namespaces of mounts), rooted (openat2), trees, tree_cursor, disk, inotify
    processes   process (pidfds, spawning), keeping (a program), namespaces, limits, memory, seccomp
    cgroups     cgroups, cgroup_parents, cgroup_moves, accounting
    network     netlink (framing), rtnetlink (links), rtaddresses (addresses, routes, neighbours), nftables (text),
                nfelements, nflisting, nftwatch, conntrack, sysctl, unixdiag

Who may touch what: this is the only package with ctypes. It knows nothing of containers, images or records, and
imports nothing but the words that all share. The drivers (`runtime`, `storage`, `network`) call it; the engine and the
edge do not. Functions block unless they say otherwise, and raise OSError unless they say otherwise.
"""
