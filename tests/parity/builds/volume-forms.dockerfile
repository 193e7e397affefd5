FROM base
ENV D=/data
VOLUME /one /two
VOLUME ["/three", "/with space"]
VOLUME $D/x
RUN mkdir -p /one && echo kept > /one/kept
