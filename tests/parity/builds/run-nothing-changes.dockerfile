FROM base
RUN true
RUN cat /etc/resolv.conf > /dev/null; cat /etc/hosts > /dev/null
RUN touch /tmp/x && rm /tmp/x
