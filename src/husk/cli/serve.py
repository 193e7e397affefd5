"""`husk serve`: dockerd's flags, turned into settings for the daemon. What they may hold is checked in one place,
together with the configuration file: here only their form."""

from pathlib import Path

import click

from husk.config import DEFAULT_DATA_ROOT, DEFAULT_EXEC_ROOT, DEFAULT_HOST


@click.command()
@click.option(
    "-H", "--host", "hosts", multiple=True, metavar="ADDRESS", help=f"Listen on unix:// or tcp://. [{DEFAULT_HOST}]"
)
@click.option("--data-root", metavar="DIR", help=f"Images, containers and their state. [{DEFAULT_DATA_ROOT}]")
@click.option("--exec-root", metavar="DIR", help=f"What need not survive a reboot. [{DEFAULT_EXEC_ROOT}]")
@click.option("-p", "--pidfile", metavar="FILE", help="File for the daemon's pid. [husk.pid in the exec root]")
@click.option("--config-file", metavar="FILE", help="Settings, with the keys of Docker's daemon.json.")
@click.option("-D", "--debug", is_flag=True, help="The same as --log-level debug.")
@click.option("-l", "--log-level", metavar="LEVEL", help="debug, info, warn, error or fatal. [info]")
@click.option("--log-format", metavar="FORMAT", help="text or json. [text]")
@click.option(
    "--insecure-registry",
    "insecure_registries",
    multiple=True,
    metavar="REGISTRY",
    help="host[:port] or CIDR reached without verified TLS.",
)
@click.option(
    "--registry-mirror", "registry_mirrors", multiple=True, metavar="URL", help="Preferred mirror of Docker Hub."
)
@click.option("--default-runtime", metavar="NAME", help="OCI runtime of containers. [crun, else runc]")
@click.option("--add-runtime", "runtimes", multiple=True, metavar="NAME=PATH", help="Register another OCI runtime.")
@click.option("-b", "--bridge", metavar="NAME", help="Interface of the default network; 'none' for no network.")
@click.option("--bip", metavar="CIDR", help="Address and prefix of the default bridge.")
@click.option(
    "--default-address-pool",
    "default_address_pools",
    multiple=True,
    metavar="base=CIDR,size=BITS",
    help="Where networks get their subnets from.",
)
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Label of the daemon.")
@click.option("--log-driver", metavar="NAME", help="Log driver of containers that name none. [json-file]")
@click.option("--log-opt", "log_opts", multiple=True, metavar="KEY=VALUE", help="Option of that log driver.")
@click.option("-G", "--group", metavar="GROUP", help="Group that may use the socket. [docker]")
@click.option("--max-layer-size", metavar="SIZE", help="Refuse layers that unpack to more, as 20g. [no limit]")
def serve(
    hosts: tuple[str, ...],
    data_root: str | None,
    exec_root: str | None,
    pidfile: str | None,
    config_file: str | None,
    debug: bool,
    log_level: str | None,
    log_format: str | None,
    insecure_registries: tuple[str, ...],
    registry_mirrors: tuple[str, ...],
    default_runtime: str | None,
    runtimes: tuple[str, ...],
    bridge: str | None,
    bip: str | None,
    default_address_pools: tuple[str, ...],
    labels: tuple[str, ...],
    log_driver: str | None,
    log_opts: tuple[str, ...],
    group: str | None,
    max_layer_size: str | None,
) -> None:
    """Run the daemon in the foreground.

    SIGTERM and SIGINT end it and leave the containers running; SIGHUP reads the configuration file again (log level,
    labels, insecure registries and mirrors take effect at once).
    """
    from husk.config_load import Settings, Source, parse_log_flag, parse_pool_flag, parse_runtime_flag
    from husk.daemon import run

    flags = Settings(
        hosts=list(hosts) or None,
        data_root=data_root,
        exec_root=exec_root,
        pidfile=pidfile,
        debug=debug or None,
        log_level=log_level,
        log_format=log_format,
        insecure_registries=list(insecure_registries) or None,
        registry_mirrors=list(registry_mirrors) or None,
        default_runtime=default_runtime,
        runtimes=dict(map(parse_runtime_flag, runtimes)) or None,
        bridge=bridge,
        bip=bip,
        default_address_pools=list(map(parse_pool_flag, default_address_pools)) or None,
        labels=list(labels) or None,
        log_driver=log_driver,
        log_opts=dict(map(parse_log_flag, log_opts)) or None,
        group=group,
        max_layer_size=max_layer_size,
    )
    run(Source(flags, Path(config_file) if config_file else None))
