FROM base AS one
RUN echo 1 > /one
FROM base AS unused
RUN exit 1
FROM base AS two
COPY --from=one /one /copied
FROM two AS three
COPY --from=0 /one /again
RUN echo 3 > /three
