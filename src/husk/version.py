"""The version of Husk. It stands alone, so that every part can tell it without loading the package's public names."""

__version__ = "0.2.0"

CLUSTER_PROTOCOL = 1
"""Counts what nodes of a swarm say to one another and write for one another: one more where a release says or writes
what the one before it would misunderstand. Which of them work together is in `husk.swarm.port.protocol`."""
