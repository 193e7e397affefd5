"""The engine's data on disk: its records, content by digest, layers, volumes, and archives on their way in and out.

- `state`: records of everything the engine knows, in one SQLite file; `lost` is where those go that make no sense
- `blobs`: content that has a digest (manifests, configurations, layers as registries have them); `sources` reads it
  out, as it is or compressed; `durable` tells when it is on the disk
- `layers`: layers in the form that can be mounted; the life of a layer is told there
- `tar`: archives, what they say and how they are written
- `workers`: the processes that read and write archives, confined to the files that they are for
- `changes`: what a container has changed, told from its overlay
- `volumes`: the directories of volumes, their first content and their mounts
- `secrets`: values that are sealed in the store, and the files that tasks get of them
- `check`: compares what lies on disk with the records; `compare` tells whether two trees are the same
- `busybox`: a root file system made of the host's own busybox

What only builds need of this kind is in `husk.builder.store`.
"""
