"""System calls and kernel interfaces, each behind a few typed functions.

    files       mount, mountinfo, views and lean_mounts (namespaces of mounts), rooted (openat2), trees, tree_cursor,
                disk, inotify, thread_files
    processes   process (pidfds, spawning), keeping (a program), namespaces, apart, jail, limits, memory, seccomp, needs
    cgroups     cgroups, cgroup_parents, cgroup_moves, accounting, brief_usage
    network     netlink (framing), rtnetlink (links), rtaddresses (addresses, routes, neighbours), nftables (text),
                nfelements, nflisting, nftwatch, linkwatch, rtvxlan, tun, conntrack, sysctl, unixdiag

Who may touch what: this is the only package with ctypes. It knows nothing of containers, images or records, and
imports nothing but the words that all share. The drivers (`runtime`, `storage`, `network`) call it; the engine and the
edge do not. Functions block unless they say otherwise, and raise OSError unless they say otherwise.
"""
