"""Caches that are elsewhere: in a registry, in a directory of the client, in an image. BuildKit reads and writes them.

A cache is a document (`config`) of records and layers. A record says by which key it is found: the digest of an
operation (`graph/op_digests`), and for each of its inputs another record, or the digest of the files that matter
(`store/portable_digest`). So keys must be those that BuildKit computes, to the byte.

`imports` fetches such documents, `records` finds what fits an operation, `lookup` does so for a build, and `service`
fetches the layers of a result when they are needed. The other way, `export` goes through what a build knows and
makes a document of it, and `write` gives it to a place of `targets`, or to the image itself.
"""
