"""A volume as seen from outside: `docker volume ls`, `inspect`, and its lines in `docker system df`."""

from pathlib import Path

from husk.api.types.volumes import UsageData, Volume
from husk.engine.model import volume as model


def volume(record: model.Volume, mountpoint: Path) -> Volume:
    return Volume(
        created_at=record.created[:19] + "Z",
        driver=record.driver,
        labels=record.labels,
        mountpoint=str(mountpoint),
        name=record.name,
        options=record.options,
    )


def usage(measured: model.VolumeUsage, mountpoint: Path) -> Volume:
    shown = volume(measured.volume, mountpoint)
    shown.usage_data = UsageData(size=measured.size, ref_count=measured.containers)
    return shown
