FROM base
RUN echo zero > /zero
FROM base AS one
RUN echo one > /one
FROM scratch
COPY --from=0 /zero /
COPY --from=1 /one /
