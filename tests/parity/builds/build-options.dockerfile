ARG A
FROM base
ARG A
LABEL from=file
RUN echo "$A" > /a; grep host.example /etc/hosts > /hosts
