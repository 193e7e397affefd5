"""Docker's restart policies: they decide whether and when a container that ended starts again. Pure."""

from husk.engine.model.container_config import RestartPolicy

FIRST_DELAY = 0.1
LONGEST_DELAY = 60.0
STABLE_AFTER = 10.0


def should_restart(policy: RestartPolicy, exit_code: int, restarts: int, stopped_by_user: bool) -> bool:
    """After an exit; a stop that somebody asked for is never undone."""
    if stopped_by_user:
        return False
    match policy.name:
        case "always" | "unless-stopped":
            return True
        case "on-failure":
            return exit_code != 0 and not 0 < policy.maximum_retry_count <= restarts
        case _:
            return False


def should_start_with_daemon(policy: RestartPolicy, was_running: bool, exit_code: int, stopped_by_user: bool) -> bool:
    """Return True to start it with the daemon: `always` even if stopped by hand, `on-failure` only if up and failed."""
    match policy.name:
        case "always":
            return True
        case "unless-stopped":
            return not stopped_by_user
        case "on-failure":
            return was_running and exit_code != 0
        case _:
            return False


def next_delay(previous: float, ran_for: float) -> float:
    """Seconds until the next start: doubled each time, begun anew after a run that held."""
    if previous == 0.0 or ran_for >= STABLE_AFTER:
        return FIRST_DELAY
    return min(previous * 2, LONGEST_DELAY)
