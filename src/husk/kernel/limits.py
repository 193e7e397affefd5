"""The number of files that this process may have open. Each container costs the daemon a few."""

import resource


def open_files() -> int:
    """Return the number of descriptors that this process may have now."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_open_files() -> int:
    """Raise the soft limit to the hard one; what it was before, or 0 when it could not be raised."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return 0
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        # A hard limit above what the kernel allows now (fs.nr_open) cannot be reached.
        return 0
    return soft
