"""Files as fsutil describes them (`types/stat.proto`)."""

from typing import Annotated

from husk.rpc.protobuf import Message, Uint32


class Stat(Message):
    """`mode` is Go's: the bits for the kind of a file are not those of the kernel."""

    path: Annotated[str, 1] = ""
    mode: Annotated[Uint32, 2] = 0
    uid: Annotated[Uint32, 3] = 0
    gid: Annotated[Uint32, 4] = 0
    size: Annotated[int, 5] = 0
    mod_time: Annotated[int, 6] = 0
    linkname: Annotated[str, 7] = ""
    devmajor: Annotated[int, 8] = 0
    devminor: Annotated[int, 9] = 0
    xattrs: Annotated[dict[str, bytes], 10] = {}
