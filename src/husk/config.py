"""What the daemon was asked to be: settings, their defaults, and the names derived from them.

The keys are dockerd's. Two daemons with different data roots share a host because everything a daemon creates outside
its directories (bridge, nftables table, cgroup parent) carries a name derived here.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_HOST = "unix:///run/husk.sock"
DEFAULT_DATA_ROOT = Path("/var/lib/husk")
DEFAULT_EXEC_ROOT = Path("/run/husk")


@dataclass(frozen=True, slots=True)
class RuntimeConfig:
    """An OCI runtime that containers may name: its program and extra arguments."""

    path: str
    args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AddressPool:
    """Networks without a subnet of their own get one of `size` bits out of `base`."""

    base: str
    size: int


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of one daemon, complete and validated."""

    hosts: tuple[str, ...] = (DEFAULT_HOST,)
    data_root: Path = DEFAULT_DATA_ROOT
    exec_root: Path = DEFAULT_EXEC_ROOT
    pidfile: Path | None = None
    log_level: str = "info"
    log_format: str = "text"
    insecure_registries: tuple[str, ...] = ()
    registry_mirrors: tuple[str, ...] = ()
    default_runtime: str = ""
    runtimes: Mapping[str, RuntimeConfig] = field(default_factory=dict)
    bridge: str = ""
    bip: str = ""
    default_address_pools: tuple[AddressPool, ...] = ()
    labels: tuple[str, ...] = ()
    log_driver: str = "json-file"
    log_opts: Mapping[str, str] = field(default_factory=dict)
    group: str = "docker"
    # Husk's own: the most bytes that one layer may unpack to; 0 is no limit.
    max_layer_size: int = 0

    @property
    def instance(self) -> str:
        """Marks this daemon's things on the host: `husk`, or `husk-1a2b3c` for another data root."""
        if self.data_root == DEFAULT_DATA_ROOT:
            return "husk"
        return "husk-" + hashlib.sha256(str(self.data_root).encode()).hexdigest()[:6]

    @property
    def bridge_name(self) -> str:
        """Name of the default bridge's interface (at most 15 characters, a kernel limit)."""
        if self.bridge:
            return self.bridge
        return "husk0" if self.instance == "husk" else self.instance.replace("husk-", "hk-") + "-0"

    @property
    def nft_table(self) -> str:
        return self.instance

    @property
    def cgroup_parent(self) -> str:
        return "/" + self.instance
