FROM base AS one
ONBUILD RUN echo one > /one
ONBUILD LABEL fired=yes
FROM one AS two
RUN echo two > /two
FROM two
