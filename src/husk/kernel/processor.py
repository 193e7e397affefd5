"""What is to be known of this processor? By which code it computes SHA-256 the fastest, which is a third of a pull.

OpenSSL chooses what it has by the instructions that there are: those for SHA, else AVX2, else AVX. On Skylake-SP and
Cascade Lake, which have none for SHA, its code with AVX2 is the slower one: 270 MB/s beside 350 (OpenSSL 3.0, 2.5 GHz).
"""

import os
from collections.abc import Mapping
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
# One of these processors, by its family and model.
_SLOW_WITH_AVX2 = ("6", "85")
_VARIABLE = "OPENSSL_ia32cap"
# Clears the bit of AVX2 and no other: a program that does nothing but hash needs it nowhere else.
_WITHOUT_AVX2 = ":~0x20"


def hashing_environment(environment: Mapping[str, str] = os.environ, cpuinfo: Path = _CPUINFO) -> dict[str, str]:
    """What a process that hashes much must have in its environment; what the administrator has set there counts."""
    if _VARIABLE in environment:
        return {_VARIABLE: environment[_VARIABLE]}
    facts = _first_processor(cpuinfo)
    model = facts.get("cpu family"), facts.get("model")
    if model == _SLOW_WITH_AVX2 and "sha_ni" not in facts.get("flags", "").split():
        return {_VARIABLE: _WITHOUT_AVX2}
    return {}


def _first_processor(cpuinfo: Path) -> dict[str, str]:
    facts: dict[str, str] = {}
    try:
        with cpuinfo.open() as lines:
            for line in lines:
                name, colon, value = line.partition(":")
                if not colon:
                    break
                facts[name.strip()] = value.strip()
    except OSError:
        pass
    return facts
