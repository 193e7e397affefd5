"""HTTP/2 without I/O, both sides of it: `core.Http2` takes the bytes that came, gives events, and bytes to be sent.

Our own, and small, because builds send very many small messages: a context of 20,000 files is 80,000 of them
(`docs/build.md` has the figures). Headers are read and written by the library `hpack`. Nothing here is imported before
the first build.
"""
