"""A manager's half of a swarm: it decides what runs where, tells nodes, and notes who lives.

`reconciler` looks, `planner` and `updates` say which tasks there are to be (pure), `scheduler` where, `changes`
writes that down. `dispatcher` tells workers, `liveness` marks nodes, `listener` is the cluster port, `ca_server`
signs, and `role` brings a host into the place of a manager and out of it.
"""
