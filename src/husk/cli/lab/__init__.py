"""`husk lab`: several hosts on one machine, to see a swarm on a laptop.

Each host is a network namespace with a daemon of its own, joined by a switch, with a wire to this machine (`wires`).
All of it belongs to one process (`holder`), which is the first of a process namespace and has mounts of its own: when
it ends, by `husk lab down` or otherwise, the kernel ends all daemons and containers with it, and takes back their
mounts, networks and interfaces. What is left then are directories and control groups (`take_back`). `layout` is pure.
"""
