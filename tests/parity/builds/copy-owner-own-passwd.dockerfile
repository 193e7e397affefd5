FROM base
RUN echo 'mine:x:777:888::/:' >> /etc/passwd; echo 'ours:x:999:' >> /etc/group
COPY --chown=mine a.txt /1
COPY --chown=mine:ours a.txt /2
COPY --chown=:ours a.txt /3
