"""The edge itself: versions, unknown paths and methods, headers, system information."""

from tests.parity.differences import NEWER
from tests.support.parity import ABSENT, ANY, Difference, Engine, Pair

REQUESTS = [
    ("GET", "/nosuch"), ("GET", "/v1.41/nosuch"), ("GET", "/v1.41/containers"), ("POST", "/v1.41/containers/json"),
    ("DELETE", "/v1.41/info"), ("PUT", "/v1.41/containers/create"), ("GET", "/v1.12/info"), ("GET", "/v1.99/info"),
    ("GET", "/v2.0/info"), ("GET", "/v1/info"), ("GET", "/vx/info"), ("GET", "/"), ("GET", "/v1.41"),
    ("GET", "/v1.41/"), ("OPTIONS", "/v1.41/info"), ("HEAD", "/v1.41/_ping"), ("GET", "/_ping"),
    ("HEAD", "/v1.41/info"),
    ("GET", "/v1.41/containers/x/nosuch"), ("POST", "/v1.41/containers/x/nosuch"), ("GET", "/v1.41/images/x"),
]  # fmt: skip


def test_paths_methods_and_versions(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        told = {}
        for method, path in REQUESTS:
            answer = engine.client.http(method, path)
            kind = answer.headers.get("Content-Type")
            body = answer.body.decode() if answer.status >= 400 or path.endswith("_ping") else ""
            told[f"{method} {path}"] = [answer.status, kind, body.replace("1.55", "1.41")]
        return told

    pair.same(
        script,
        Difference("$.GET /v1.12/info(*)", ANY, ANY, "dockerd 25 serves no version before 1.24"),
        Difference("$.GET /v1/info(*)", ANY, ANY, "so old a client got plain text; Husk has one form of error"),
    )


def test_headers(pair: Pair) -> None:
    wanted = ("Api-Version", "Cache-Control", "Pragma", "Docker-Experimental", "Ostype", "Content-Type")

    def script(engine: Engine) -> object:
        def headers(path: str) -> object:
            shown = {key.title(): value for key, value in engine.client.http("GET", path).headers.items()}
            return {key: str(shown.get(key)).replace("1.55", "1.41") for key in wanted}

        return {path: headers(path) for path in ("/_ping", "/v1.41/_ping", "/v1.41/containers/json", "/v1.41/version")}

    pair.same(script)


def test_info_and_version(pair: Pair) -> None:
    def script(engine: Engine) -> object:
        info, version = engine.get("/info")["body"], engine.get("/version")["body"]
        kept = ("Architecture", "OSType", "NCPU", "MemTotal", "KernelVersion", "OperatingSystem", "LoggingDriver",
                "CgroupDriver", "CgroupVersion", "Driver", "IPv4Forwarding", "MemoryLimit", "SwapLimit", "CpuCfsPeriod",
                "CpuCfsQuota", "CPUShares", "CPUSet", "PidsLimit", "OomKillDisable", "DefaultRuntime", "Isolation",
                "LiveRestoreEnabled", "SecurityOptions", "Swarm", "RegistryConfig")  # fmt: skip
        return {
            "keys": dict.fromkeys(info, True),
            "values": {key: info.get(key) for key in kept},
            "version keys": dict.fromkeys(version, True),
            "plugins": {key: info["Plugins"][key] for key in ("Volume", "Authorization")},
        }

    pair.same(
        script,
        Difference("$.keys.KernelMemory*", True, ABSENT, "a limit that no kernel has any more; dockerd 23 dropped it"),
        Difference("$.keys.CDISpecDirs", ABSENT, True, "a field of API 1.44"),
        Difference("$.values.DefaultRuntime", "runc", "crun", "Husk's own choice"),
        Difference("$.values.LiveRestoreEnabled", False, True, "Husk's containers always outlive it"),
        Difference("$.values.RegistryConfig.AllowNon*", [], None, NEWER),
        Difference("$.values.RegistryConfig.Mirrors", [], None, NEWER),
        Difference("$.values.RegistryConfig.InsecureRegistryCIDRs(1)", ABSENT, "::1/128", NEWER),
        Difference("$.values.SecurityOptions(0)", ANY, "name=seccomp,profile=builtin", NEWER),
    )
