"""Archives: what they say, and how they are written.

- `parser` tells the entries (`entry`) of an archive from its bytes and does no I/O; `header`, `pax` and `sparse` are
  what it reads. `stream` feeds it in a worker, `flow` in the daemon with what a client sends, as it comes
- `members` writes archives; the headers are `header`'s
- `whiteouts` is what layers and overlayfs agree on
- `decompress` is for workers, `inflate` for what a client sends; `zstd_frames` tells where a stream of zstd is whole
"""
