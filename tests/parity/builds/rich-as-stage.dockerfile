FROM rich AS one
RUN echo ran > /tmp/ran
FROM one
USER root
RUN echo root > /root-file
