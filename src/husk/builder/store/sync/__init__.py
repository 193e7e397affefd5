"""Directories that go between a client and here: a build's context one way, what a build exports the other.

The protocol is fsutil's, as BuildKit uses it. The sender tells of all its files in order; the receiver asks for those
that it lacks; the sender sends them. `packets` has the messages, `table` what is kept of a tree between two syncs.

- `receive` is a worker: it makes a tree the same as the client's. What it decides is in `receiver`, what it does to
  files in `writer`
- `send` is a worker: it tells of a tree and sends files of it
- `small` receives little in the daemon itself, where a worker would take longer to start than to work
- `exchange` moves a channel's bytes between the daemon and a worker
- `mirrors` keeps clients' directories from one build to the next; `exports` sends a build's result
"""
