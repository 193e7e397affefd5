"""The reasons why this node does not do what a client asks of a swarm, in dockerd's words where it has them."""

NOT_A_MANAGER = (
    'This node is not a swarm manager. Use "docker swarm init" or "docker swarm join" to connect this node to swarm '
    "and try again."
)
IN_NO_SWARM = "This node is not part of a swarm"
A_WORKER = (
    "This node is not a swarm manager. Worker nodes can't be used to view or modify cluster state. Please run this "
    "command on a manager node or promote the current node to a manager."
)
UNREADABLE = "The record of this node's swarm cannot be read: see husk doctor --check-store."
ALREADY_ONE = 'This node is already part of a swarm. Use "docker swarm leave" to leave this swarm and join another one.'
NO_SWARM = 'The cluster store holds no swarm yet. Use "docker swarm init" to make one in it.'
HAS_ONE = (
    'The cluster store holds a swarm already. Use "docker swarm join" with that swarm\'s token for managers to become '
    "one of them, or start the daemon with another --cluster-store."
)
LOCKED = (
    'Swarm is encrypted and needs to be unlocked before it can be used. Please use "docker swarm unlock" to unlock it.'
)


def leaving(managers: int) -> str:
    """Say why a manager, of this many, does not leave unless it is forced."""
    if managers > 1:
        return (
            "You are attempting to leave the swarm on a node that is participating as a manager. Removing this node "
            f"leaves {managers - 1} managers out of {managers}. Use `--force` to suppress this message."
        )
    return (
        "You are attempting to leave the swarm on a node that is participating as a manager. Removing the last "
        "manager erases all current state of the swarm. Use `--force` to ignore this message."
    )
