FROM base
RUN --mount=type=tmpfs,target=/made/by/mount true
RUN --mount=type=bind,from=base,source=/etc/passwd,target=/made/file true
RUN --mount=type=cache,target=/etc/cache,id=left true
