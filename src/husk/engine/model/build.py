"""What builds keep in the store. Who only wants to know whether there is any of it need not load the builder."""

RECORD = "build-record"
CACHE_MOUNT = "build-cache-mount"
