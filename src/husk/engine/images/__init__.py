"""The life of an image.

    pull, load, import,
    commit, bootstrap         layers come into the layer store, each complete or absent; then the configuration and the
                              manifest become blobs; then one transaction writes the image's record and its names
    push, save                its content goes out as it came; layers that were made here are compressed for registries
    tag, untag                a name (`docker.io/library/busybox:latest`, or `...@sha256:...`) points to an image, or to
                              an image index: the same image for several platforms, each an image of its own
    remove                    names first, then the records, then blobs and layers that nobody else uses

Until the record is written nothing is visible; layers without an owner are collected at the next start.

There is one type `Image` (`model/image.py`), however it came and whatever it is used for. Beside it are OCI's own
documents: `ImageConfig` (the configuration blob), `ImageIndex` (the record of an index) and `ImageContent` (the bytes
that a push or an archive sends).

Modules: `catalog` (records and names, lookup), `store` (what all share, and what is garbage), `index` (several
platforms of an image), `make` (configuration + layers -> image), `content` (image -> manifest, configuration, layers),
`manifests` (what of them is here), `attestations`, `pull` with `singleflight` (one download for all) and `limiter`
(how many at a time), `push`, `save`, `load` with `archive` (what an archive says), `importer`, `changes` (Dockerfile
instructions), `tag` (names for new images), `bootstrap` (the local busybox), `remove` (Docker's conflict rules),
`prune`, `history`, `transfers` (with questions to registries), `check` (what damage in the store means for images),
`service` (what the edge calls).

Who may touch what: this room imports no other room of the engine but `model`. What it has to know of containers is
handed to it as a function; `docker commit` is in `containers`, which comes here for what makes an image.
"""
