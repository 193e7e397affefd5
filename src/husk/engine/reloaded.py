"""The event of a reload: the settings that hold now, in dockerd's words. Pure."""

import json

from husk.config import Config


def told(config: Config) -> dict[str, str]:
    """Attributes of the event, by dockerd's names of the settings."""
    return {
        "debug": json.dumps(config.log_level == "debug"),
        "labels": json.dumps(config.labels),
        "insecure-registries": json.dumps(config.insecure_registries),
        "registry-mirrors": json.dumps(config.registry_mirrors),
        "max-concurrent-downloads": str(config.max_concurrent_downloads),
        "max-concurrent-uploads": str(config.max_concurrent_uploads),
        "max-download-attempts": str(config.max_download_attempts),
        "shutdown-timeout": str(-1 if config.shutdown_timeout is None else int(config.shutdown_timeout)),
        "default-runtime": config.default_runtime,
        "runtimes": " ".join(f"{name}:{runtime.path}" for name, runtime in config.runtimes.items()),
        "default-shm-size": str(config.containers.default_shm_size),
        "default-ipc-mode": config.containers.default_ipc_mode,
        "default-cgroupns-mode": config.containers.default_cgroupns_mode,
        "features": json.dumps(dict(config.features)),
        "live-restore": json.dumps(config.live_restore),
    }
