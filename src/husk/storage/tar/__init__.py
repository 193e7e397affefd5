"""Archives: what they say, and how they are written.

- `stream` reads one in a worker, entry by entry, `flow` one that a client sends, while the event loop goes on
- `members` writes one
- `whiteouts` is what layers and overlayfs agree on
- `compression` tells what a stream is compressed with, `inflate` decompresses what a client sends
"""
