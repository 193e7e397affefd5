FROM base
RUN mkdir -p /d/sub && echo old > /d/one.txt && chmod 700 /d && chown 5:6 /d && echo keep > /d/sub/keep && ln -s x /d/two.log
COPY dir /d
COPY --chown=7:8 dir /d/sub
