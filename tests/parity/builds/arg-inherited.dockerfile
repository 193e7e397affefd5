FROM base AS one
ARG A=1
ENV E=$A
FROM one
RUN echo "${A:-none} $E" > /seen
ARG A
RUN echo "${A:-none} $E" > /seen2
