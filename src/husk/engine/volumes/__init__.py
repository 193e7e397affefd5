"""The life of a volume.

    create     a directory data-root/volumes/<name>/_data, then a record in the store: now it exists. A volume without
               a name of its own gets 64 hexadecimal digits and a label that says so; it begins to exist in the same
               transaction as the container that it is made for.
    first use  a container is made that has the empty volume where its image has a directory: the volume gets the
               content of that directory, with owners and modes (`storage/volumes` tells how a crash is survived)
    mount      a container with it starts. Most volumes are plain directories; one with options (type, o, device) is
               mounted on its `_data` by the first container that starts, and unmounted after the last
    remove     refused while any container has it, running or not. The record goes first, then the directory. Volumes
               without a name go with their container (`rm -v`, `--rm`), in one transaction

Who owns what on the host: a mount on `_data` belongs to the running containers that have the volume; whatever no
running container has is unmounted when the daemon starts.

Modules: `spec` (what a client says of a new volume), `listing` (filters, pure), `locks` (one change at a time for each
volume), `service` (what the edge and containers call). The record is in `model/volume.py`; what driver options mean is
in `storage/volumes/options.py`.

Who may touch what: of other rooms this one knows `model` alone; which containers there are is handed to it as a
function.
"""
