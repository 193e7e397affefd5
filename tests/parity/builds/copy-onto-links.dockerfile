FROM base
RUN mkdir /real && ln -s real /link && ln -s real/file /tofile && echo old > /real/file
COPY a.txt /link/
COPY b.txt /link/b
COPY a.txt /tofile
COPY dir /link
