"""Drives what runs a container: the OCI runtime, the monitor beside it, and the container's side of the host.

- `spec` and what it is put together from (`capabilities`, `devices`, `limits`, `seccomp`, `users`): the OCI document
  of a container; pure but for what it reads of the host's devices
- `oci`: crun, runc or another OCI runtime; `runtimes`: those that this host has; `complaints`: what one that
  fails says; `precompiled` keeps seccomp filters that crun has compiled before
- `conmon`: the monitor, which keeps stdio, log and exit status while no daemon runs; `exec`: one more process
- `host_files`: what files of the host say of it
- `process`: waits for the end of a process, and signals it
- `assembly`: everything that lies on the host for a container: root, shm, network files, staged mounts, cgroup; and how
  it is taken away again
- `log_files`: the files that make up a log; `log_transport`: ways to receivers of logs

The engine decides and records, and calls what is here; nothing here knows records, the store, images or networks.
"""
