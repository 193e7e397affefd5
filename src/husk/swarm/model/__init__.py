"""Records of a swarm, and pure rules on them that all rooms share.

`services` has the records of services, tasks, secrets and configs, `swarm` those of the swarm and of this host's
place in it, `node` that of a node. `clocks` tells by what time is counted, `placement` what tasks take of their node.
"""
