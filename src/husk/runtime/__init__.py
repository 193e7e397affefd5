"""Drives what runs a container: the OCI runtime, the process beside it, and the container's side of the host.

- `spec`: the OCI document of a container, and what it is put together from
- `seccomp`: the filter of system calls: Docker's default, a client's own, and both compiled for crun
- `oci`: crun, runc or another OCI runtime; `runtimes`: those that this host has, with `notes` about each;
  `complaints`: what one that fails says
- `supervise`: the processes that keep a container's output and exit status
- `assembly`: everything that lies on the host for a container: root, shm, network files, staged mounts, cgroup; and how
  it is taken away again
- `logs`: the files that make up a log, and ways to receivers of logs
- `process`: waits for the end of a process, and signals it; `host_files`, `emulators`: what this host is
- `sockets`: sockets that are mounted into containers; `rest`: memory that goes back to the host

The engine decides and records, and calls what is here; nothing here knows records, the store, images or networks.
"""
