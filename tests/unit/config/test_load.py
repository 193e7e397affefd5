"""Flags and daemon.json become one validated configuration, by Docker's rules."""

import json
from pathlib import Path

import pytest

from husk.config import AddressPool, Config, DashboardConfig, RuntimeConfig, TlsConfig
from husk.config.load import Names, SettingsSource, build, merge, reloadable
from husk.config.settings import RuntimeSetting, Settings, UlimitSetting, parse_file, read_file
from husk.errors import InvalidParameter


@pytest.fixture
def daemon_json(tmp_path: Path):
    def write(**keys: object) -> Path:
        path = tmp_path / "daemon.json"
        path.write_text(json.dumps({key.replace("_", "-"): value for key, value in keys.items()}))
        return path

    return write


def test_without_flags_and_file_the_defaults_hold(tmp_path):
    assert SettingsSource(Settings(), names=Names(tmp_path / "absent.json")).load() == Config()


def test_the_default_file_is_read_when_it_exists(daemon_json):
    assert SettingsSource(Settings(), names=Names(daemon_json(labels=["a=b"]))).load().labels == ("a=b",)


def test_every_key_of_the_file_reaches_its_setting():
    text = """{
      "hosts": ["unix:///run/x.sock", "tcp://127.0.0.1:2375"], "data-root": "/srv/husk", "exec-root": "/run/x",
      "pidfile": "/run/x.pid", "log-level": "warn", "log-format": "json",
      "insecure-registries": ["10.0.0.0/8", "Reg:5000"],
      "registry-mirrors": ["https://mirror.example"], "default-runtime": "kata",
      "runtimes": {"kata": {"path": "/usr/bin/kata", "runtimeArgs": ["--debug"]}},
      "bip": "172.26.0.1/16",
      "default-address-pools": [{"base": "172.30.0.0/16", "size": 24}], "labels": ["a=b"], "group": "staff",
      "max-layer-size": "20g", "dashboard": "127.0.0.1:2380", "dashboard-names": ["box"], "dashboard-read-only": true,
      "debug-stalls": true
    }"""
    assert build(parse_file(text)) == Config(
        hosts=("unix:///run/x.sock", "tcp://127.0.0.1:2375"),
        data_root=Path("/srv/husk"),
        exec_root=Path("/run/x"),
        pidfile=Path("/run/x.pid"),
        log_level="warn",
        debug_stalls=True,
        log_format="json",
        insecure_registries=("10.0.0.0/8", "reg:5000"),
        registry_mirrors=("https://mirror.example/",),
        default_runtime="kata",
        runtimes={"kata": RuntimeConfig("/usr/bin/kata", ("--debug",))},
        bip="172.26.0.1/16",
        default_address_pools=(AddressPool("172.30.0.0/16", 24),),
        labels=("a=b",),
        group="staff",
        max_layer_size=20 << 30,
        dashboard=DashboardConfig("127.0.0.1:2380", ("box",), True),
    )


def test_debug_is_a_log_level():
    assert build(parse_file('{"debug": true}')).log_level == "debug"


@pytest.mark.parametrize("text", ["", "  \n", "{}"])
def test_an_empty_file_changes_nothing(text):
    assert build(parse_file(text)) == Config()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"it is not JSON: .* \(line 1, column 2\)"),
        ("[]", "one JSON object"),
        ('{"foo": 1, "bar": 2}', "don't match any configuration option: bar, foo"),
        ('{"hosts": "unix:///x"}', "hosts: expected `array"),
        ('{"labels": ["a=b", 1]}', r"labels\[1\]: expected `str`"),
        ('{"debug": "yes"}', "debug: expected `bool`"),
        ('{"runtimes": {"x": {}}}', "runtimes.*path"),
        ('{"default-address-pools": [{"base": "10.0.0.0/8"}]}', "size"),
    ],
)
def test_a_faulty_file_is_refused_with_what_is_wrong(text, message):
    with pytest.raises(InvalidParameter, match=message):
        parse_file(text)


def test_a_named_file_must_exist(tmp_path):
    with pytest.raises(InvalidParameter, match=r"with file .*/absent: open .*/absent: No such file"):
        SettingsSource(Settings(), tmp_path / "absent").load()


def test_a_key_given_as_flag_and_in_the_file_is_a_conflict():
    with pytest.raises(InvalidParameter) as caught:
        merge(Settings(hosts=["unix:///a"], group="x"), Settings(hosts=["unix:///b"], group="y", labels=["a=b"]))
    assert caught.value.message == (
        "the following directives are specified both as a flag and in the configuration file: "
        "hosts: (from flag: [unix:///a], from file: [unix:///b]), group: (from flag: x, from file: y)"
    )


def test_flags_and_file_complete_each_other():
    merged = merge(Settings(labels=["a=b"]), Settings(group="x"))
    assert (merged.labels, merged.group, merged.hosts) == (["a=b"], "x", None)


def test_runtimes_of_flags_and_file_add_up():
    merged = merge(Settings(runtimes={"a": RuntimeSetting("/a")}), Settings(runtimes={"b": RuntimeSetting("/b")}))
    assert merged.runtimes is not None and merged.runtimes.keys() == {"a", "b"}


def test_one_runtime_cannot_be_defined_twice():
    both = {"a": RuntimeSetting("/a")}
    with pytest.raises(InvalidParameter, match="both as a flag and in the configuration file: a"):
        merge(Settings(runtimes=both), Settings(runtimes=both))


def test_reloading_takes_what_can_change_and_names_what_cannot():
    running = Config(labels=("a=1",), group="docker")
    wanted = Config(
        labels=("a=2",), log_level="debug", registry_mirrors=("https://m/",), group="staff", bip="10.1.0.1/24"
    )
    renewed, left = reloadable(running, wanted)
    assert renewed == Config(labels=("a=2",), log_level="debug", registry_mirrors=("https://m/",), group="docker")
    assert set(left) == {"group", "bip"}


# --- listening on TCP


def test_an_open_port_takes_tlsverify_or_a_word_that_it_is_meant():
    with pytest.raises(InvalidParameter, match=r"tcp://0.0.0.0:2375 without --tlsverify .* say --tls=false"):
        build(Settings(hosts=["unix:///x", "tcp://0.0.0.0"]))
    assert build(Settings(hosts=["tcp://0.0.0.0"], tls=False)).tls is None
    for local in ("tcp://127.0.0.1", "tcp://[::1]:1", "tcp://localhost", "tcp://", "fd://"):
        assert build(Settings(hosts=[local])).tls is None
    with pytest.raises(InvalidParameter, match=r"tcp://some.host:1 without --tlsverify"):
        build(Settings(hosts=["tcp://some.host:1"]))
    # Who reaches a socket of systemd's is seen when it is taken over.
    assert build(Settings(hosts=["fd://"])).loopback_only
    assert not build(Settings(hosts=["fd://"], tls=False)).loopback_only


@pytest.mark.parametrize(
    ("settings", "verify"),
    [
        (Settings(tls=True), True),
        (Settings(tlsverify=True), True),
        (Settings(tls=True, tlsverify=False), False),
        (Settings(tlsverify=False), False),
        (Settings(tls=False, tlsverify=True), True),
    ],
)
def test_tls_asks_for_certificates_unless_it_is_told_not_to(settings, verify):
    tls = build(settings).tls
    assert tls is not None and tls.verify is verify


def test_certificates_are_where_docker_keeps_them(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path))
    (tmp_path / "cert.pem").touch()
    found = build(Settings(tlsverify=True, hosts=["tcp://0.0.0.0"]))
    assert found.tls == TlsConfig(True, tmp_path / "ca.pem", tmp_path / "cert.pem", None)
    assert found.hosts == ("tcp://0.0.0.0:2376",)
    named = build(Settings(tls=True, tlscacert="/a", tlscert="/b", tlskey="/c")).tls
    assert named == TlsConfig(True, Path("/a"), Path("/b"), Path("/c"))


# --- other rules


def test_two_keys_for_one_thing():
    assert parse_file('{"host-gateway-ip": "192.0.2.1"}').host_gateway_ips == ["192.0.2.1"]
    with pytest.raises(InvalidParameter, match="host-gateway-ip and host-gateway-ips must not both be specified"):
        parse_file('{"host-gateway-ip": "192.0.2.1", "host-gateway-ips": []}')
    file = parse_file('{"proxies": {"http-proxy": "http://a:1", "no-proxy": "x"}}')
    assert (file.http_proxy, file.https_proxy, file.no_proxy) == ("http://a:1", None, "x")


def test_a_conflict_does_not_show_the_password_of_a_proxy():
    with pytest.raises(InvalidParameter) as caught:
        merge(Settings(http_proxy="http://me:secret@a:1"), Settings(http_proxy="http://me:secret@b:1"))
    assert "http://xxxxx:xxxxx@a:1" in caught.value.message and "secret" not in caught.value.message


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(max_concurrent_downloads=-1), "invalid max concurrent downloads: -1"),
        (Settings(max_concurrent_uploads=-1), "invalid max concurrent uploads: -1"),
        (Settings(max_download_attempts=-1), "invalid max download attempts: -1"),
        (Settings(default_ipc_mode="host"), 'IPC mode "host" is not supported as default value'),
        (Settings(default_cgroupns_mode="x"), "invalid default cgroup namespace"),
        (Settings(default_ulimits={"x": UlimitSetting(1, 1)}), "invalid ulimit type: x"),
        (Settings(default_ulimits={"nofile": UlimitSetting(2, 1)}), "soft limit must be less than or equal"),
        (Settings(default_shm_size="much"), "invalid default-shm-size 'much'"),
        (Settings(seccomp_profile="/absent.json"), "opening seccomp profile .* failed"),
        (Settings(init_path="/absent"), "invalid init-path '/absent'"),
        (Settings(dns=["x"]), "invalid dns 'x'"),
        (Settings(http_proxy="ftp://me:secret@x"), "invalid http-proxy: it has the form"),
        (Settings(cgroup_parent="x.slice"), "is one of systemd's"),
    ],
)
def test_values_that_make_no_sense_are_told(settings, words):
    with pytest.raises(InvalidParameter, match=words):
        build(settings)


def test_zero_is_no_wish_and_less_than_zero_no_limit():
    config = build(Settings(max_concurrent_downloads=0, max_download_attempts=0, shutdown_timeout=-1))
    assert (config.max_concurrent_downloads, config.max_download_attempts, config.shutdown_timeout) == (3, 5, None)


def test_editors_of_windows_mark_their_encoding(tmp_path):
    for encoding in ("utf-8-sig", "utf-16"):
        path = tmp_path / encoding
        path.write_text('{"labels": ["a=ü"]}', encoding=encoding)
        assert read_file(path).labels == ["a=ü"]


def test_what_needs_a_restart_is_named_by_its_key():
    wanted = build(Settings(mtu=1400, init=True, tls=True, http_proxy="http://a:1", default_shm_size="1m"))
    _, left = reloadable(Config(), wanted)
    assert set(left) == {"mtu", "init", "tls", "hosts", "http-proxy"}


def test_tls_without_a_host_is_on_localhost_as_in_dockerd():
    assert build(Settings(tls=True)).hosts == ("tcp://localhost:2376",)
    assert build(Settings(tls=True, hosts=["unix://"])).hosts == Config().hosts
