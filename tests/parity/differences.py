"""Differences between Husk and dockerd 20.10 that are meant, with the reasons. Tables that several tests share."""

from tests.support.parity import ABSENT, ANY, Difference

NEWER = "dockerd 28, which Husk follows, does it so"
OWN = "where the engine keeps its own things is its own affair"
RUNTIME = "crun does it so, runc differently"
CLIENTS_FAULT = "a mistake of the client is no error of the server; dockerd 28 answers so too"
STRICTER = "refused at once with what is wrong, not at start or never"


def refused(path: str, dockerd: object, husk: object, why: str = CLIENTS_FAULT) -> Difference:
    return Difference(path, dockerd, husk, why)


HOST_CONFIG = (
    Difference("*.KernelMemory", 0, ABSENT, "a limit that no kernel has any more; dockerd 23 dropped it"),
    Difference("*.KernelMemoryTCP", 0, ABSENT, "a limit that no kernel has any more; dockerd 23 dropped it"),
    Difference("*.Runtime", ANY, "crun", "the default runtime is crun, and written down at create"),
)
NOT_PRIVILEGED = (
    Difference("*.MaskedPaths(*)", ANY, ANY, "dockerd 28 also masks /proc/interrupts and powercap, and sorts them"),
)
DEFAULT_NETWORK = (Difference("*.NetworkMode", "default", "bridge", "dockerd 26 writes down what `default` means"),)
NO_POLICY = (Difference("*.RestartPolicy.Name", "", "no", NEWER),)
GRAPH = (
    Difference("*.GraphDriver.Data.ID", ABSENT, ANY, NEWER),
    Difference("*.GraphDriver.Data.*Dir", ANY, ANY, OWN),
)
INSPECT = (*GRAPH, *HOST_CONFIG)
ENDPOINTS = (
    Difference("*.Networks.*.DNSNames", ABSENT, None, "a field of API 1.44"),
    Difference("*.Networks.*.GwPriority", ABSENT, 0, "a field of API 1.48"),
)
NEVER_STARTED = (Difference("*.Networks.*.NetworkID", "", "<id>", "the network is known before the first start"),)
STARTED = (Difference("*.LogPath", ANY, "<directory>/data/containers/<id of box>/container.log", OWN),)
RUNNING = (Difference("*.NetworkSettings.SandboxKey", ANY, ANY, OWN),)
ENDED = (
    Difference("*.NetworkSettings.SandboxID", "<id>", "", "there is no sandbox any more"),
    Difference("*.NetworkSettings.SandboxKey", ANY, "", "there is no sandbox any more"),
)
