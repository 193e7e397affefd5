"""Values that nobody may read from the disk.

- `sealing` keeps them sealed in the store, with a key that `locks` can lock
- `task_files` gives them to tasks as files in memory

`swarm` alone seals and opens them, and decides which task gets which; a plain value is never written to the
disk, nor logged.
"""
