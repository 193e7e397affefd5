FROM base AS one
RUN echo 1 > /one
LABEL stage=one
FROM one AS two
RUN exit 1
