"""Values that nobody may read from the disk.

- `sealing` keeps them sealed in the store, with a key that `locks` can lock
- `task_files` gives them to tasks as files in memory
- `ciphers` is how they are sealed

`swarm` alone seals and opens them, and decides which task gets which; a plain value is never written to the
disk, nor logged.
"""

from typing import TYPE_CHECKING

from husk.aio.once import late

if TYPE_CHECKING:
    from husk.storage.secrets import ciphers as ciphers
else:
    # A door: `cryptography` takes a tenth of a start's time, and a swarm of one host may have nothing that is sealed.
    __getattr__ = late(__name__, "ciphers")
