FROM base
WORKDIR /a
WORKDIR b
WORKDIR ../c
RUN pwd > /pwd
ENV D=/env/dir
WORKDIR ${D}/x
WORKDIR /with space/y/
RUN pwd > /pwd2
USER daemon
WORKDIR /owned/by
WORKDIR /a
