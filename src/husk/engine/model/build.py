"""Kinds of records that builds keep. Who only wants to know whether there is any of them need not load the builder."""

RECORD = "build-record"
CACHE_MOUNT = "build-cache-mount"
