FROM base
ENV A=1
ARG B=2
RUN env | grep -v -E '^(HOSTNAME|SHLVL|_)=' | sort > /env; umask > /umask; tr '\0' ' ' < /proc/1/cmdline > /cmdline
RUN ls /dev | grep -v -E '^(core|mqueue)$' > /dev-list
