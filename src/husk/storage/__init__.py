"""What is kept on disk: the engine's records, content by digest, layers, and the root file systems of containers.

- `state`: records of everything the engine knows, in one SQLite file
- `blobs`: content that has a digest (manifests, configurations, layers as registries have them)
- `layers`: layers in the form that can be mounted; the life of a layer is told there
- `overlay`: a container's writable root over the layers of its image
- `workers` runs `unpack` (a layer's stream into blob and directory) and `diff` (a container's changes into a stream) as
  processes of their own; `tar` and `extract` are what `unpack` is made of, `archive` what layers and overlayfs agree on
- `trees`: removing and measuring what somebody hostile has filled
"""
