FROM base
RUN mkdir -p /x/tree && echo old > /x/tree/file && mkdir /x/sym
ADD archive.tar /x
