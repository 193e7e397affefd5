FROM base AS other
RUN mkdir /o && echo other > /o/file
FROM base
RUN --mount=target=/ctx cp /ctx/a.txt /1 && ls /ctx > /ls
RUN --mount=type=bind,from=other,source=/o,target=/mnt cp /mnt/file /2
RUN --mount=type=bind,from=other,src=o/file,dst=/f/file cat /f/file > /3
RUN --mount=type=bind,from=other,source=/o,target=/rw,rw echo changed > /rw/file; cat /rw/file > /4
RUN --mount=type=bind,from=other,target=/ro touch /ro/x || echo read-only > /5
RUN --mount=from=base,target=/base,source=etc ls /base > /6
WORKDIR /wd
RUN --mount=target=rel ls rel/dir > /7
