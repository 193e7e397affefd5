FROM base
SHELL ["/bin/ash", "-euc"]
RUN echo "$0" > /shell
ENTRYPOINT top
SHELL ["/bin/sh", "-c"]
RUN echo plain > /plain
