FROM base
ENV U=daemon
USER daemon
RUN id -u > /tmp/1; id -g >> /tmp/1; echo $HOME >> /tmp/1
USER 33:100
RUN id -u > /tmp/2; id -g >> /tmp/2; echo $HOME >> /tmp/2
USER $U:users
RUN id -u > /tmp/3; id -g >> /tmp/3
USER 4242
RUN id > /tmp/4; echo $HOME >> /tmp/4
