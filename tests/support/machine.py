"""This machine in Docker's words, and a platform that it does not run."""

import platform

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
# As dockerd names this host to users: with the variant that it leaves out everywhere else.
DETECTED = "linux/arm64/v8" if ARCHITECTURE == "arm64" else f"linux/{ARCHITECTURE}"
FOREIGN = "amd64" if ARCHITECTURE == "arm64" else "arm64"
# Images say which variant they are for, where an architecture has some.
FOREIGN_VARIANT = "v8" if FOREIGN == "arm64" else ""
FOREIGN_PLATFORM = {"architecture": FOREIGN, "os": "linux"} | ({"variant": "v8"} if FOREIGN_VARIANT else {})
