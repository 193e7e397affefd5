"""The life of an image.

    pull, load, import,
    commit, bootstrap         layers come into the layer store, each complete or absent; then the configuration and the
                              manifest become blobs; then one transaction writes the image's record and its names
    push, save                its content goes out as it came; layers that were made here are compressed for registries
    tag, untag                a name (`docker.io/library/busybox:latest`, or `...@sha256:...`) points to an image, or to
                              a family: an index of the same image for several platforms, each an image of its own
    remove                    names first, then the records, then blobs and layers that nobody else uses

Until the record is written nothing is visible; layers without an owner are collected at the next start.

Modules: `model` (the types), `index` (records and names, lookup), `store` (what all share, and what is garbage),
`family` (several platforms of an image), `make` (configuration + layers -> image), `content` (image -> manifest,
configuration, layers), `manifests` (what of them is here), `attestations`, `pull` with `shared` (one download for all),
`push`, `save`, `load` with `archive` (what an archive says), `importer`, `commit` with `changes` (instructions),
`bootstrap` (the local busybox), `remove` (Docker's conflict rules), `prune`, `history`, `remote` (at registries),
`check` (what damage in the store means for images), `service` (what the edge calls).
"""
