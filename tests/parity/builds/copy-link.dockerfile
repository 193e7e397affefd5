FROM base
COPY --link a.txt /deep/er/a
COPY --link dir /linked/
COPY --link --chown=12:34 --chmod=700 b.txt /deep/
COPY --link --from=base /etc/passwd /deep/passwd
RUN ls /deep > /seen
