"""A client's specification of a volume that is to be made, and the record that it becomes."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from husk.engine.model.clock import now_ns, rfc3339
from husk.engine.model.volume import ANONYMOUS_LABEL, DRIVER, Volume, check_name
from husk.errors import InvalidParameter, NotFound
from husk.storage.volumes import options


class VolumeSpec(NamedTuple):
    """A volume as a client describes it; without a name it is to be a new one."""

    name: str = ""
    driver: str = ""
    options: Mapping[str, str] | None = None
    labels: Mapping[str, str] | None = None


def draft(spec: VolumeSpec) -> Volume:
    """The record of a new volume; InvalidParameter and NotFound say what is wrong with the specification."""
    if spec.driver not in ("", DRIVER):
        raise NotFound(
            f'create {spec.name}: error looking up volume plugin {spec.driver}: plugin "{spec.driver}" not found'
        )
    labels = None if spec.labels is None else dict(spec.labels)
    name = spec.name
    try:
        if name:
            check_name(name)
        else:
            name = os.urandom(32).hex()
            labels = {**(labels or {}), ANONYMOUS_LABEL: ""}
        if spec.options:
            options.check_options(spec.options)
    except InvalidParameter as error:
        raise InvalidParameter(f"create {spec.name or name}: {error.message}") from error
    return Volume(
        name=name,
        created=rfc3339(now_ns()),
        labels=labels,
        options=None if spec.options is None else dict(spec.options),
    )
