FROM base
COPY --chown=daemon a.txt /1
COPY --chown=daemon:users a.txt /2
COPY --chown=33:100 a.txt /3
COPY --chown=33 a.txt /4
COPY --chown=:users a.txt /5
COPY --chown=nobody:7 dir /new/deep/6/
ENV O=www-data
COPY --chown=$O:$O a.txt /7
USER daemon
COPY a.txt /8
WORKDIR /w
COPY a.txt .
