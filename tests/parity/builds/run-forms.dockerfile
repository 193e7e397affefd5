FROM base
RUN echo "shell $HOME" > /1
RUN ["/bin/sh", "-c", "echo \"exec $HOME\" > /2"]
RUN ["touch", "/a b"]
RUN echo a; \
    echo b > /3
RUN   echo    spaces    kept   > /4
RUN [ -e /4 ] && echo bracket > /5
