"""Every flag and every key of dockerd 28.5 is known: it works, or is explained, or is refused with the reason.

What dockerd has is written here as facts (`dockerd --help`, and the keys that its daemon.json may hold).
"""

import re
from pathlib import Path

import pytest

from husk.config import Config
from husk.config.keys import BY_FLAG, BY_KEY, OPTIONS, SECTIONS, Option
from husk.config.load import build
from husk.config.settings import Settings, from_flags, keys, parse_file
from husk.errors import InvalidParameter

WORKS, MEANS, REFUSED = "works", "means", "refused"

# flag, key in the file, what becomes of it, and a value that asks for something (as the flag's text).
DOCKERD = [
    ("add-runtime", "runtimes", WORKS, "mine=/bin/true"),
    ("allow-direct-routing", "allow-direct-routing", REFUSED, "true"),
    ("allow-nondistributable-artifacts", "allow-nondistributable-artifacts", MEANS, "r.example"),
    ("api-cors-header", "api-cors-header", REFUSED, "*"),
    ("authorization-plugin", "authorization-plugins", REFUSED, "opa"),
    ("bip", "bip", WORKS, "10.9.0.1/24"),
    ("bip6", "bip6", WORKS, "fd00:9::1/64"),
    ("bridge", "bridge", WORKS, "br9"),
    ("cdi-spec-dir", "cdi-spec-dirs", REFUSED, "/etc/cdi"),
    ("cgroup-parent", "cgroup-parent", WORKS, "/mine"),
    ("config-file", "", WORKS, None),
    ("containerd", "containerd", MEANS, "/run/c.sock"),
    ("containerd-namespace", "containerd-namespace", MEANS, "moby"),
    ("containerd-plugins-namespace", "containerd-plugins-namespace", MEANS, "plugins.moby"),
    ("cpu-rt-period", "cpu-rt-period", REFUSED, "1000000"),
    ("cpu-rt-runtime", "cpu-rt-runtime", REFUSED, "950000"),
    ("cri-containerd", "cri-containerd", REFUSED, "true"),
    ("data-root", "data-root", WORKS, "/srv/husk"),
    ("debug", "debug", WORKS, "true"),
    ("default-address-pool", "default-address-pools", WORKS, "base=10.8.0.0/16,size=24"),
    ("default-cgroupns-mode", "default-cgroupns-mode", WORKS, "private"),
    ("default-gateway", "default-gateway", WORKS, "10.9.0.9"),
    ("default-gateway-v6", "default-gateway-v6", WORKS, "fd00:9::9"),
    ("default-ipc-mode", "default-ipc-mode", WORKS, "shareable"),
    ("default-network-opt", "default-network-opts", WORKS, "bridge=com.docker.network.driver.mtu=1400"),
    ("default-runtime", "default-runtime", WORKS, "runc"),
    ("default-shm-size", "default-shm-size", WORKS, "32m"),
    ("default-ulimit", "default-ulimits", WORKS, "nofile=1024:2048"),
    ("dns", "dns", WORKS, "192.0.2.1"),
    ("dns-opt", "dns-opts", WORKS, "ndots:2"),
    ("dns-search", "dns-search", WORKS, "example.test"),
    ("exec-opt", "exec-opts", MEANS, "native.cgroupdriver=cgroupfs"),
    ("exec-root", "exec-root", WORKS, "/run/x"),
    ("experimental", "experimental", WORKS, "true"),
    ("feature", "features", MEANS, "containerd-snapshotter"),
    ("fixed-cidr", "fixed-cidr", WORKS, "10.9.1.0/24"),
    ("fixed-cidr-v6", "fixed-cidr-v6", WORKS, "fd00:9::/64"),
    ("group", "group", WORKS, "staff"),
    ("host", "hosts", WORKS, "unix:///x.sock"),
    ("host-gateway-ip", "host-gateway-ips", WORKS, "192.0.2.2"),
    ("http-proxy", "http-proxy", WORKS, "http://proxy.example:3128"),
    ("https-proxy", "https-proxy", WORKS, "http://proxy.example:3128"),
    ("icc", "icc", WORKS, "false"),
    ("init", "init", WORKS, "true"),
    ("init-path", "init-path", WORKS, "/bin/true"),
    ("insecure-registry", "insecure-registries", WORKS, "plain.example"),
    ("ip", "ip", WORKS, "127.0.0.1"),
    ("ip-forward", "ip-forward", WORKS, "false"),
    ("ip-forward-no-drop", "ip-forward-no-drop", MEANS, "true"),
    ("ip-masq", "ip-masq", WORKS, "false"),
    ("ip6tables", "ip6tables", MEANS, "false"),
    ("iptables", "iptables", MEANS, "false"),
    ("ipv6", "ipv6", WORKS, "true"),
    ("label", "labels", WORKS, "a=b"),
    ("live-restore", "live-restore", WORKS, "false"),
    ("log-driver", "log-driver", WORKS, "journald"),
    ("log-format", "log-format", WORKS, "json"),
    ("log-level", "log-level", WORKS, "warn"),
    ("log-opt", "log-opts", WORKS, "max-size=10m"),
    ("max-concurrent-downloads", "max-concurrent-downloads", WORKS, "7"),
    ("max-concurrent-uploads", "max-concurrent-uploads", WORKS, "7"),
    ("max-download-attempts", "max-download-attempts", WORKS, "7"),
    ("metrics-addr", "metrics-addr", WORKS, "127.0.0.1:9323"),
    ("mtu", "mtu", WORKS, "1400"),
    ("network-control-plane-mtu", "network-control-plane-mtu", MEANS, "1400"),
    ("network-diagnostic-port", "network-diagnostic-port", REFUSED, "2000"),
    ("no-new-privileges", "no-new-privileges", WORKS, "true"),
    ("no-proxy", "no-proxy", WORKS, "localhost"),
    ("node-generic-resource", "node-generic-resources", REFUSED, "gpu=1"),
    ("pidfile", "pidfile", WORKS, "/run/x.pid"),
    ("raw-logs", "raw-logs", MEANS, "true"),
    ("registry-mirror", "registry-mirrors", WORKS, "https://mirror.example"),
    ("restart", "", MEANS, None),
    ("rootless", "rootless", REFUSED, "true"),
    ("seccomp-profile", "seccomp-profile", WORKS, "unconfined"),
    ("selinux-enabled", "selinux-enabled", REFUSED, "true"),
    ("shutdown-timeout", "shutdown-timeout", WORKS, "30"),
    ("storage-driver", "storage-driver", MEANS, "overlay2"),
    ("storage-opt", "storage-opts", MEANS, "overlay2.override_kernel_check=true"),
    ("swarm-default-advertise-addr", "swarm-default-advertise-addr", WORKS, "eth0"),
    ("tls", "tls", WORKS, "true"),
    ("tlscacert", "tlscacert", WORKS, "/ca.pem"),
    ("tlscert", "tlscert", WORKS, "/cert.pem"),
    ("tlskey", "tlskey", WORKS, "/key.pem"),
    ("tlsverify", "tlsverify", WORKS, "true"),
    ("userland-proxy", "userland-proxy", MEANS, "false"),
    ("userland-proxy-path", "userland-proxy-path", MEANS, "/usr/bin/docker-proxy"),
    ("userns-remap", "userns-remap", REFUSED, "default"),
    ("validate", "", WORKS, None),
]
# What only the file has, with a value in JSON.
ONLY_IN_THE_FILE = [
    ("builder", WORKS, '{"gc": {"enabled": true, "defaultKeepStorage": "10GB"}}'),
    ("deprecated-key-path", MEANS, '"/etc/docker/key.json"'),
    ("host-gateway-ip", WORKS, '"192.0.2.2"'),
    ("proxies", WORKS, '{"http-proxy": "http://proxy.example:3128", "no-proxy": "localhost"}'),
]
SHORT = {"b": "bridge", "D": "debug", "G": "group", "H": "host", "l": "log-level", "p": "pidfile", "r": "restart",
         "s": "storage-driver"}  # fmt: skip
# Need another setting to change anything.
NOT_ALONE = {"tlscacert", "tlscert", "tlskey", "dashboard-names", "dashboard-read-only"}


OUR_FLAGS = {
    "audit-log",
    "cluster-store",
    "cluster-store-opt",
    "dashboard",
    "dashboard-name",
    "dashboard-read-only",
    "debug-stalls",
    "max-layer-size",
    "metrics-containers",
    "wireguard-port",
    "swarm-etcd-ports",
}
OUR_KEYS = {
    "audit-log",
    "cluster-store",
    "cluster-store-opts",
    "dashboard",
    "dashboard-names",
    "dashboard-read-only",
    "debug-stalls",
    "max-layer-size",
    "metrics-containers",
    "wireguard-port",
    "swarm-etcd-ports",
}


def test_flags_are_dockerds_and_some_of_ours() -> None:
    assert {option.flag for option in OPTIONS if option.flag} == {flag for flag, *_ in DOCKERD} | OUR_FLAGS


def test_keys_are_dockerds_and_some_of_ours() -> None:
    wanted = {key for _, key, *_ in DOCKERD if key} | {key for key, *_ in ONLY_IN_THE_FILE} | OUR_KEYS
    assert {option.key for option in OPTIONS if option.key} == wanted == set(keys().values())


def test_letters_are_dockerds() -> None:
    assert {option.short: option.flag for option in OPTIONS if option.short} == SHORT


@pytest.mark.parametrize(("flag", "key", "handling", "text"), DOCKERD, ids=[flag for flag, *_ in DOCKERD])
def test_every_flag_works_is_explained_or_is_refused(flag: str, key: str, handling: str, text: str | None) -> None:
    option = BY_FLAG[flag]
    assert option.key == key
    if text is None:
        return
    settings = from_flags({flag: (text,) if option.multiple else text})
    _expect(option, handling, settings)


@pytest.mark.parametrize(("key", "handling", "text"), ONLY_IN_THE_FILE)
def test_every_key_of_the_file_alone_does_too(key: str, handling: str, text: str) -> None:
    _expect(BY_KEY[key], handling, parse_file(f'{{"{key}": {text}}}'))


def _expect(option: Option, handling: str, settings: Settings) -> None:
    if handling == REFUSED:
        with pytest.raises(InvalidParameter, match=re.escape(f"{option.key}: {option.refused}")):
            build(settings)
        return
    config = build(settings)
    assert len(config.remarks) == (1 if handling == MEANS else 0)
    assert all(remark.startswith(f"{option.key}: ") for remark in config.remarks)
    if handling == WORKS and option.key not in NOT_ALONE:
        assert config != Config(), f"{option.key} changes nothing"


@pytest.mark.parametrize("key", [option.key for option in OPTIONS if option.refused])
def test_what_asks_for_nothing_is_not_refused(key: str) -> None:
    field = BY_KEY[key].field
    nothings: tuple[object, ...] = (False, "", 0, [])
    for nothing in nothings:
        settings = Settings()
        setattr(settings, field, nothing)
        build(settings)


def test_the_page_of_the_configuration_is_the_table() -> None:
    page = (Path(__file__).parents[3] / "docs/configuration.md").read_text()
    for title, options in SECTIONS:
        assert f"## {title}\n" in page
        for option in options:
            flag = f"`--{option.flag}`" if option.flag else ""
            key = f"`{option.key}`" if option.key else ""
            rows = [line for line in page.splitlines() if line.startswith(f"| {flag} | {key} |".replace("|  |", "| |"))]
            assert len(rows) == 1, (option.flag, option.key)
            assert (option.means or option.refused or option.help) in rows[0].replace("\\|", "|"), rows[0]
