"""Networks of a swarm: which of them a node knows, the addresses on them, and how services are reached.

`allocator` gives addresses of networks that hosts share, `share` and `views` tell what a node may know, `server`
serves that to workers and `remote` asks for it. `overlay_feed` leads to other hosts, `endpoints` keeps virtual
addresses, names and published ports, `worker` does so on a worker.
"""
