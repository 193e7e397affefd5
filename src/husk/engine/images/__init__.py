"""The life of an image.

    pull, load, import,
    commit, bootstrap         layers come into the layer store, each complete or absent; then the configuration and the
                              manifest become blobs; then one transaction writes the image's record and its names
    push, save                its content goes out as it came; layers that were made here are compressed for registries
    tag, untag                a name (`docker.io/library/busybox:latest`, or `...@sha256:...`) points to an image id
    remove                    names first, then the record, then blobs and layers that nobody else uses

Until the record is written nothing is visible; layers without an owner are collected at the next start.

Modules: `model` (the types), `index` (records and names, lookup, the store), `make` (configuration + layers -> image),
`content` (image -> manifest, configuration, layers), `pull` with `shared` (one download for all who want it), `push`,
`save`, `load` with `archive` (what an archive says), `importer`, `commit` with `changes` (Dockerfile instructions),
`bootstrap` (the local busybox), `remove` (Docker's conflict rules), `prune`, `history`, `remote` (at registries),
`check` (what damage in the store means for images), `service` (what the edge calls).
"""
