"""Processes that do the file-heavy work, each confined to the files that it is for.

- `handle` is the daemon's hold on one; `nursery` gets it from a process that forks them, `forker`
- `unpack` makes a layer of a stream (`intake` keeps the blob, `extract` makes the files), `diff` a stream of what a
  container has changed, `diff_blob` a blob of what a step of a build has
- `pack` and `put` bring files out of and into a container's own view, which `confine` makes; `outlet` and `body` are
  the client's socket, past the daemon
"""
