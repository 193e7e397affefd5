"""The worker of builds, as clients are told of it: the labels decide what they think that it can do."""

import re
from collections.abc import Sequence

from husk.builder.graph import llb_write
from husk.builder.protocol.messages import control
from husk.builder.service import Builder
from husk.config import CacheRule
from husk.version import __version__

SNAPSHOTTER = "org.mobyproject.buildkit.worker.snapshotter"
"""With this label buildx sends exports to archives, pushes and several platforms to a docker daemon."""
HOST_GATEWAY = "org.mobyproject.buildkit.worker.moby.host-gateway-ip"
"""The address that `--add-host name:host-gateway` stands for: clients look it up themselves."""

# What clients are told that we are as good as: some of them ask for versions before they use a feature.
_VERSION = "v0.26.0"
_DOCKERFILE_VERSION = "1.20.0"
_DURATION = re.compile(r"(?<![\d.])([\d.]+)(h|m|s)")
_SECONDS = {"h": 3600, "m": 60, "s": 1}


def worker_record(builder: Builder, engine_id: str, host_gateways: Sequence[str]) -> control.WorkerRecord:
    return control.WorkerRecord(
        id=engine_id,
        labels={SNAPSHOTTER: "overlayfs", **({HOST_GATEWAY: host_gateways[0]} if host_gateways else {})},
        platforms=[llb_write.platform(one) for one in builder.platforms()],
        gc_policy=[_policy(rule) for rule in builder.rules],
        buildkit_version=version(),
    )


def version() -> control.BuildkitVersion:
    return control.BuildkitVersion("husk", _VERSION, f"husk-{__version__}", _DOCKERFILE_VERSION)


def _policy(rule: CacheRule) -> control.GCPolicy:
    return control.GCPolicy(
        all=rule.all,
        keep_duration=_nanoseconds(rule.unused_for),
        filters=[f"type=={one}" for one in rule.types],
        max_used_space=rule.keep,
    )


def _nanoseconds(duration: str) -> int:
    return int(sum(float(number) * _SECONDS[unit] for number, unit in _DURATION.findall(duration)) * 10**9)
