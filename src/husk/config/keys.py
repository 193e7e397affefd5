"""The flags and keys of dockerd 28.5, and what Husk makes of each: one table for the command line, for `daemon.json`,
for `--help`, and for docs/configuration.md.

An option works; or it is accepted and one line of the log says what it `means` here; or it is `refused` with the
reason, because accepting it would promise something untrue. What asks for nothing (`false`, an empty text or list) is
accepted of a refused option too. Options that take some values and refuse others are judged in `husk.config.remarks`.
"""

from enum import Enum
from typing import NamedTuple


class KeyKind(Enum):
    """The kind of a key: the text of its flag, and the value in the file."""

    TRUTH = "true or false"
    TEXT = "text"
    NUMBER = "number"
    SIZE = "size"
    LIST = "list"
    ADDRESSES = "list, also with commas"
    MAP = "key=value"
    FEATURES = "name[=true|false]"
    DRIVER_OPTIONS = "driver=key=value"
    ULIMIT = "name=soft[:hard]"
    RUNTIME = "name=path"
    POOL = "base=CIDR,size=BITS"
    NONE = "only in the file"


class Option(NamedTuple):
    """`flag` and `key` are the names on the command line and in the file, empty where it has none."""

    flag: str
    key: str
    kind: KeyKind
    help: str
    short: str = ""
    means: str = ""
    refused: str = ""

    @property
    def field(self) -> str:
        """Its name in `husk.config.settings.Settings`."""
        return (self.key or self.flag).replace("-", "_")

    @property
    def multiple(self) -> bool:
        return self.kind not in (KeyKind.TRUTH, KeyKind.TEXT, KeyKind.NUMBER, KeyKind.SIZE)


def _same(name: str, kind: KeyKind, help: str, short: str = "", means: str = "", refused: str = "") -> Option:
    return Option(name, name, kind, help, short, means, refused)


_LISTENING = (
    Option("host", "hosts", KeyKind.LIST, "Listen on unix://, tcp:// or fd://.", short="H"),
    _same("group", KeyKind.TEXT, "Group that may use the Unix socket. [docker]", short="G"),
    _same("tls", KeyKind.TRUTH, "TLS on tcp:// listeners, with client certificates unless --tlsverify=false."),
    _same("tlsverify", KeyKind.TRUTH, "TLS, and clients must show a certificate of the CA (false: TLS alone)."),
    _same("tlscacert", KeyKind.TEXT, "CA of the clients' certificates. [~/.docker/ca.pem]"),
    _same("tlscert", KeyKind.TEXT, "The daemon's certificate. [~/.docker/cert.pem]"),
    _same("tlskey", KeyKind.TEXT, "The daemon's key. [~/.docker/key.pem]"),
    Option(
        "authorization-plugin",
        "authorization-plugins",
        KeyKind.LIST,
        "Refused: Husk asks no plugins.",
        refused="Husk asks no authorization plugin: requests would pass that the plugin is there to stop",
    ),
    _same(
        "api-cors-header",
        KeyKind.TEXT,
        "Refused, as by dockerd.",
        refused="it was removed from dockerd: use a reverse proxy if you need CORS headers",
    ),
    _same("dashboard", KeyKind.TEXT, "Husk's own: serve web pages on ADDRESS:PORT, as 127.0.0.1:2380. [none]"),
    Option("dashboard-name", "dashboard-names", KeyKind.LIST, "Husk's own: another name that browsers know it by."),
    _same("dashboard-read-only", KeyKind.TRUTH, "Husk's own: the web pages change nothing. [false]"),
    _same(
        "metrics-addr",
        KeyKind.TEXT,
        "Serve Prometheus metrics on host:port, as in 127.0.0.1:9323: GET /metrics, without TLS.",
    ),
    _same(
        "metrics-containers",
        KeyKind.NUMBER,
        "Husk's own: the most containers whose own metrics are told; 0 for none. [1000]",
    ),
    _same(
        "cluster-store", KeyKind.TEXT, "An etcd that keeps the records of the swarm: etcd://a,b,c. [Husk's own store]"
    ),
    Option(
        "cluster-store-opt",
        "cluster-store-opts",
        KeyKind.MAP,
        "Certificates for it: kv.cacertfile, kv.certfile and kv.keyfile, each =FILE.",
    ),
    _same("wireguard-port", KeyKind.NUMBER, "Husk's own: the UDP port of encrypted overlay networks. [51820]"),
    _same(
        "swarm-etcd-ports",
        KeyKind.TEXT,
        "Husk's own: where a manager's etcd listens, CLIENTS,MEMBERS; what it began with stays. [2379,2380]",
    ),
    _same("audit-log", KeyKind.TEXT, "Husk's own: append a line of JSON to this file for each change. [none]"),
)

_DAEMON = (
    Option("config-file", "", KeyKind.TEXT, "File with the settings, as Docker's daemon.json."),
    Option("validate", "", KeyKind.TRUTH, "Check flags and file, say 'configuration OK', and exit."),
    _same("data-root", KeyKind.TEXT, "Images, containers and their state. [/var/lib/husk]"),
    _same("exec-root", KeyKind.TEXT, "What need not survive a reboot. [/run/husk]"),
    _same("pidfile", KeyKind.TEXT, "File for the daemon's pid. [husk.pid in the exec root]", short="p"),
    _same("debug", KeyKind.TRUTH, "The same as --log-level debug.", short="D"),
    _same(
        "debug-stalls",
        KeyKind.TRUTH,
        "Husk's own: log what makes all others wait for 100 ms. [false]",
    ),
    _same("log-level", KeyKind.TEXT, "debug, info, warn, error or fatal. [info]", short="l"),
    _same("log-format", KeyKind.TEXT, "text or json. [text]"),
    _same("raw-logs", KeyKind.TRUTH, "Accepted.", means="the daemon's log has full timestamps and no colours anyway"),
    Option("label", "labels", KeyKind.LIST, "Label of the daemon, key=value."),
    Option("feature", "features", KeyKind.FEATURES, "Features of dockerd by name."),
    _same("experimental", KeyKind.TRUTH, "Tell clients so; classic builds take --squash. [false]"),
    _same("shutdown-timeout", KeyKind.NUMBER, "Seconds to wait for what is under way at the end; -1 is no limit. [15]"),
    _same(
        "live-restore",
        KeyKind.TRUTH,
        "Containers outlive the daemon, and the next one finds them; false: they end with it. [true]",
    ),
    _same(
        "rootless",
        KeyKind.TRUTH,
        "Refused.",
        refused="Husk needs root: there is no rootless mode yet",
    ),
    Option(
        "restart",
        "",
        KeyKind.TRUTH,
        "Accepted, as dockerd's deprecated flag.",
        short="r",
        means="restart policies of containers decide what is started again",
    ),
    _same("max-layer-size", KeyKind.SIZE, "Husk's own: refuse layers that unpack to more, as 20g. [no limit]"),
)

_REGISTRIES = (
    Option(
        "insecure-registry", "insecure-registries", KeyKind.LIST, "host[:port] or CIDR reached without verified TLS."
    ),
    Option("registry-mirror", "registry-mirrors", KeyKind.LIST, "Preferred mirror of Docker Hub."),
    _same("max-concurrent-downloads", KeyKind.NUMBER, "Layers that are downloaded at a time. [3]"),
    _same("max-concurrent-uploads", KeyKind.NUMBER, "Layers that are uploaded at a time. [5]"),
    _same("max-download-attempts", KeyKind.NUMBER, "How often the download of a layer is tried. [5]"),
    _same("http-proxy", KeyKind.TEXT, "Proxy for plain HTTP to registries (in the file also below 'proxies')."),
    _same("https-proxy", KeyKind.TEXT, "Proxy for HTTPS to registries (in the file also below 'proxies')."),
    _same("no-proxy", KeyKind.TEXT, "Hosts, domains and CIDRs reached without a proxy, with commas."),
    Option("", "proxies", KeyKind.NONE, "http-proxy, https-proxy and no-proxy in one object."),
    _same(
        "allow-nondistributable-artifacts",
        KeyKind.LIST,
        "Accepted, as dockerd's deprecated flag.",
        means="layers that must not be distributed are pushed nowhere",
    ),
    Option(
        "",
        "deprecated-key-path",
        KeyKind.NONE,
        "Accepted and ignored, as by dockerd.",
        means="Husk has no key of an old registry protocol: it changes nothing",
    ),
)

_CONTAINERS = (
    _same("default-runtime", KeyKind.TEXT, "OCI runtime of containers. [crun, else runc]"),
    Option("add-runtime", "runtimes", KeyKind.RUNTIME, "Register another OCI runtime."),
    _same("log-driver", KeyKind.TEXT, "Log driver of containers that name none. [json-file]"),
    Option("log-opt", "log-opts", KeyKind.MAP, "Option of that log driver."),
    _same("default-ipc-mode", KeyKind.TEXT, "private or shareable. [private]"),
    _same("default-shm-size", KeyKind.SIZE, "Size of /dev/shm. [64m]"),
    _same("default-cgroupns-mode", KeyKind.TEXT, "host or private. [private on cgroup v2, else host]"),
    Option("default-ulimit", "default-ulimits", KeyKind.ULIMIT, "Limit of containers that set none of that name."),
    _same("seccomp-profile", KeyKind.TEXT, "Path of the default profile, 'builtin' or 'unconfined'. [builtin]"),
    _same("no-new-privileges", KeyKind.TRUTH, "Containers gain no privileges unless they say otherwise."),
    _same("init", KeyKind.TRUTH, "Containers get an init process unless they say otherwise."),
    _same("init-path", KeyKind.TEXT, "That init program. [docker-init, tini-static, tini or catatonit]"),
    _same("cgroup-parent", KeyKind.TEXT, "Parent cgroup of containers that name none. [/husk]"),
    Option("exec-opt", "exec-opts", KeyKind.LIST, "native.cgroupdriver=cgroupfs, which is what Husk does."),
    _same(
        "cpu-rt-period",
        KeyKind.NUMBER,
        "Refused.",
        refused="Husk sets no real-time limits for all containers together: use `docker run --cpu-rt-runtime`",
    ),
    _same(
        "cpu-rt-runtime",
        KeyKind.NUMBER,
        "Refused.",
        refused="Husk sets no real-time limits for all containers together: use `docker run --cpu-rt-runtime`",
    ),
    _same("selinux-enabled", KeyKind.TRUTH, "Refused.", refused="Husk labels nothing for SELinux yet"),
    _same(
        "userns-remap", KeyKind.TEXT, "Refused.", refused="Husk has no user namespaces yet: root in a container is root"
    ),
    Option(
        "cdi-spec-dir",
        "cdi-spec-dirs",
        KeyKind.LIST,
        "Refused.",
        refused="Husk injects no CDI devices yet: containers that ask for one would not get it",
    ),
)

_STORAGE = (
    _same("storage-driver", KeyKind.TEXT, "overlay2 or overlayfs, which is what Husk does.", short="s"),
    Option("storage-opt", "storage-opts", KeyKind.LIST, "overlay2.override_kernel_check; others are refused."),
    Option(
        "",
        "builder",
        KeyKind.NONE,
        "How much of the cache of builds stays (gc), what steps may ask for (entitlements) and get (limits).",
    ),
    _same("containerd", KeyKind.TEXT, "Accepted.", means="Husk runs containers with conmon and needs no containerd"),
    _same(
        "containerd-namespace",
        KeyKind.TEXT,
        "Accepted.",
        means="Husk runs containers with conmon and needs no containerd",
    ),
    _same(
        "containerd-plugins-namespace",
        KeyKind.TEXT,
        "Accepted.",
        means="Husk runs containers with conmon and needs no containerd",
    ),
    _same(
        "cri-containerd",
        KeyKind.TRUTH,
        "Refused.",
        refused="Husk starts no containerd, so there is no CRI service for a kubelet",
    ),
)

_NETWORKS = (
    _same("bridge", KeyKind.TEXT, "Interface of the default network; 'none' for no such network.", short="b"),
    _same("bip", KeyKind.TEXT, "IPv4 address and prefix of the default bridge."),
    _same("bip6", KeyKind.TEXT, "IPv6 address and prefix of the default bridge."),
    _same("fixed-cidr", KeyKind.TEXT, "Part of the default bridge's subnet that containers get addresses from."),
    _same("fixed-cidr-v6", KeyKind.TEXT, "The same for IPv6; with --ipv6 also the subnet."),
    _same("ipv6", KeyKind.TRUTH, "IPv6 on the default bridge."),
    _same("default-gateway", KeyKind.TEXT, "IPv4 gateway of containers on the default bridge."),
    _same("default-gateway-v6", KeyKind.TEXT, "IPv6 gateway of containers on the default bridge."),
    _same("icc", KeyKind.TRUTH, "Containers on the default bridge reach each other. [true]"),
    _same("ip", KeyKind.TEXT, "Address of the host that ports of the default bridge are published on. [all]"),
    _same("ip-masq", KeyKind.TRUTH, "Containers of the default bridge appear outside with the host's address. [true]"),
    _same("ip-forward", KeyKind.TRUTH, "Switch the host's forwarding on where a network needs it. [true]"),
    _same(
        "ip-forward-no-drop",
        KeyKind.TRUTH,
        "Accepted.",
        means="Husk never changes the policy of other chains: packets that its networks do not know pass as before",
    ),
    _same("mtu", KeyKind.NUMBER, "MTU of the default bridge. [1500, or what the uplinks take]"),
    Option("default-address-pool", "default-address-pools", KeyKind.POOL, "Where networks get their subnets from."),
    Option(
        "default-network-opt", "default-network-opts", KeyKind.DRIVER_OPTIONS, "Options of new networks, by driver."
    ),
    _same("dns", KeyKind.ADDRESSES, "DNS server of containers that name none."),
    Option("dns-opt", "dns-opts", KeyKind.LIST, "DNS option of containers that name none."),
    _same("dns-search", KeyKind.LIST, "DNS search domain of containers that name none."),
    Option("host-gateway-ip", "host-gateway-ips", KeyKind.ADDRESSES, "What --add-host name:host-gateway means."),
    Option("", "host-gateway-ip", KeyKind.NONE, "The older key for one address of host-gateway-ips."),
    _same(
        "iptables",
        KeyKind.TRUTH,
        "Accepted.",
        means="Husk's rules are a table of its own in nftables, which no network works without; "
        "those of iptables are neither read nor changed",
    ),
    _same(
        "ip6tables",
        KeyKind.TRUTH,
        "Accepted.",
        means="Husk's rules are a table of its own in nftables, which no network works without; "
        "those of ip6tables are neither read nor changed",
    ),
    _same(
        "userland-proxy",
        KeyKind.TRUTH,
        "Accepted.",
        means="published ports are translated in the kernel; what cannot be is relayed by the daemon itself",
    ),
    _same(
        "userland-proxy-path",
        KeyKind.TEXT,
        "Accepted.",
        means="published ports are translated in the kernel; what cannot be is relayed by the daemon itself",
    ),
    _same(
        "allow-direct-routing",
        KeyKind.TRUTH,
        "Refused.",
        refused="it would open all networks: give the one you mean the option "
        "com.docker.network.bridge.gateway_mode_ipv4=nat-unprotected",
    ),
    _same(
        "network-control-plane-mtu",
        KeyKind.NUMBER,
        "Accepted.",
        means="hosts of a swarm talk by TCP, which finds the size of packets itself",
    ),
    _same(
        "network-diagnostic-port",
        KeyKind.NUMBER,
        "Refused.",
        refused="Husk has no diagnostic server of networks",
    ),
    _same(
        "swarm-default-advertise-addr",
        KeyKind.TEXT,
        "Address or interface by which a swarm's nodes know this one. [the one that leads out]",
    ),
    Option(
        "node-generic-resource",
        "node-generic-resources",
        KeyKind.LIST,
        "Refused.",
        refused="this node cannot declare resources of its own yet: tasks that reserve some would wait for ever",
    ),
)

SECTIONS: tuple[tuple[str, tuple[Option, ...]], ...] = (
    ("Where it listens", _LISTENING),
    ("The daemon", _DAEMON),
    ("Registries", _REGISTRIES),
    ("Containers", _CONTAINERS),
    ("Storage", _STORAGE),
    ("Networks", _NETWORKS),
)
OPTIONS = tuple(option for _, options in SECTIONS for option in options)
BY_FLAG = {option.flag: option for option in OPTIONS if option.flag}
BY_SHORT = {option.short: option for option in OPTIONS if option.short}
BY_KEY = {option.key: option for option in OPTIONS if option.key}
