FROM base
RUN echo 1 > /f && chmod 4711 /f && chown 12:13 /f && ln -s f /l && ln f /h && mkdir -m 1777 /d && mknod /n c 1 7 && mkfifo -m 600 /p
RUN rm /f && mv /d /e && echo 2 > /e/x
RUN rm -r /e && mkdir /e && echo 3 > /e/y
RUN rm /etc/group && chmod 700 /etc
RUN true
