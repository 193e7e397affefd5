"""What is kept on disk: the engine's records, content by digest, layers, and the root file systems of containers.

- `state`: records of everything the engine knows, in one SQLite file
- `blobs`: content that has a digest (manifests, configurations, layers as registries have them)
- `layers`: layers in the form that can be mounted; the life of a layer is told there; `writeback` has their files
  synced, `recover` makes them again after a power cut, of which `power` knows; `trash` deletes what nobody needs
- `overlay`: a container's writable root over the layers of its image
- `changes`: what a container has changed, told from the overlay
- `workers` runs `unpack` (a layer's stream into blob and directory), `diff` (a container's changes into a stream),
  `pack` and `put` (files out of and into a container's own view, which `confine` makes) as processes of their own;
  `nursery` gets those from a process that forks them, `forker`
- `tar` and `extract` read archives, `members` writes them, `archive` is what layers and overlayfs agree on,
  `compression` tells what a stream is compressed with
- `sources` reads blobs out, as they are or compressed; `inflate` and `tarflow` read what a client sends (`load`)
- `volumes`: the directories of volumes, their first content (`copies` brings it) and their mounts
- `check`: is what lies on disk what the records say? `compare` tells whether two trees are the same
"""
