"""Settings that mean something else here than in dockerd, or would promise what Husk does not do. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from husk.config.settings import Settings, given
from husk.errors import InvalidParameter

_DRIVERS = ("overlay2", "overlayfs", "overlay")


def judge(settings: Settings) -> tuple[str, ...]:
    """One line per setting that is accepted and means something else. InvalidParameter says why one is refused."""
    remarks = []
    for option, value in given(settings):
        name = option.key
        if option.refused and value:
            raise InvalidParameter(f"{name}: {option.refused}")
        if option.means:
            remarks.append(f"{name}: {option.means}")
        if (special := _SPECIAL.get(name)) is not None:
            remarks += special(value)
    return tuple(remarks)


def _storage_driver(name: str) -> Iterable[str]:
    if name and name not in _DRIVERS:
        raise InvalidParameter(
            f"storage-driver: Husk keeps layers in directories under overlayfs: it has no driver {name!r}"
        )
    return [f"storage-driver: {name} is what Husk uses; its store is its own, images of dockerd are not in it"]


def _storage_opts(options: list[str]) -> Iterable[str]:
    for option in options:
        name = option.partition("=")[0].strip().lower()
        if name not in ("overlay2.override_kernel_check", "overlay.override_kernel_check"):
            raise InvalidParameter(f"storage-opts: Husk does not know {name}: it sets no quotas and no other options")
        yield f"storage-opts: {name} changes nothing: Husk does not judge kernels by their version"


def _exec_opts(options: list[str]) -> Iterable[str]:
    for option in options:
        name, _, value = (part.strip() for part in option.partition("="))
        if not name or not value:
            raise InvalidParameter(f"invalid exec-opt ({option}): must be formatted 'opt=value'")
        if name.lower() != "native.cgroupdriver":
            raise InvalidParameter(f"invalid exec-opt ({option}): unknown option: '{name}'")
        if value != "cgroupfs":
            raise InvalidParameter(
                f"exec-opts: native.cgroupdriver={value}: Husk makes control groups itself (cgroupfs), systemd would "
                "know nothing of them"
            )
        yield "exec-opts: native.cgroupdriver=cgroupfs is what Husk does anyway"


def _features(features: Mapping[str, bool]) -> Iterable[str]:
    for name, wanted in features.items():
        if name == "cdi" and wanted:
            raise InvalidParameter("features: cdi: Husk injects no CDI devices yet")
        if name in ("containerd-snapshotter", "containerd-migration"):
            yield f"features: {name}: Husk has a store of its own, which keeps images of several platforms anyway"
        elif name not in ("cdi", "buildkit"):
            yield f"features: Husk knows no feature {name!r}: it changes nothing"


_SPECIAL: dict[str, Callable[[Any], Iterable[str]]] = {
    "storage-driver": _storage_driver,
    "storage-opts": _storage_opts,
    "exec-opts": _exec_opts,
    "features": _features,
}
