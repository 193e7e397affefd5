"""Certificates that are trusted at one registry, and the one that shows who we are: dockerd's `certs.d` directories.

certs.d/registry.example:5000/ca.crt          a CA to trust besides the host's own (any *.crt)
certs.d/registry.example:5000/client.cert     a certificate of ours, with client.key beside it (any *.cert)
"""

import ssl
from collections.abc import Sequence
from pathlib import Path

from husk.errors import SystemFault
from husk.trust import trusting

DIRECTORIES = (Path("/etc/docker/certs.d"), Path("/etc/husk/certs.d"))


def context_for(host: str, directories: Sequence[Path], *, lenient: bool = False) -> ssl.SSLContext | None:
    """The TLS settings for `host`; None if no directory has anything for it. Blocks: it reads files."""
    if host in (".", ".."):
        return None  # a redirect may say so
    present = [found for top in directories if (found := top / host).is_dir()]
    authorities = [file for found in present for file in sorted(found.glob("*.crt"))]
    own = [file for found in present for file in sorted(found.glob("*.cert"))]
    _check_keys(present)
    if not authorities and not own:
        return None
    try:
        context = trusting()
        for file in authorities:
            context.load_verify_locations(file)
        for file in own:
            key = file.with_suffix(".key")
            if not key.exists():
                raise SystemFault(
                    f"missing key {key.name} for client certificate {file.name} (CA certificates end with .crt)"
                )
            context.load_cert_chain(file, key)
    except (OSError, ssl.SSLError) as error:
        raise SystemFault(f"cannot use the certificates in {', '.join(map(str, present))}: {error}") from error
    if lenient:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _check_keys(present: Sequence[Path]) -> None:
    for directory in present:
        for key in directory.glob("*.key"):
            if not key.with_suffix(".cert").exists():
                raise SystemFault(f"missing client certificate {key.stem}.cert for key {key.name} in {directory}")
