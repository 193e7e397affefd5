"""Containers that run to their end, with the real docker command."""

from tests.support.daemon import Daemon


def run(daemon: Daemon, *arguments: str) -> str:
    """The output of a container that ends well."""
    return daemon.docker("run", "--rm", *arguments).stdout


def sh(daemon: Daemon, script: str, *options: str) -> str:
    return run(daemon, *options, "busybox", "sh", "-c", script)
