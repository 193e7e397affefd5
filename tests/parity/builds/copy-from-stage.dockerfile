FROM base AS src
RUN mkdir -p /s/d && echo 1 > /s/1 && echo 2 > /s/d/2 && ln -s 1 /s/l && ln /s/1 /s/hard && chown -R 3:4 /s && chmod 711 /s/d && mknod /s/null c 1 3 && mkfifo /s/pipe
FROM base
COPY --from=src /s /t
COPY --from=src s/1 /u
COPY --from=src --chown=daemon /s/d/ /v/
COPY --from=src /s/l /w
