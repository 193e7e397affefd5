FROM base
RUN --mount=type=cache,target=/c,id=one echo 1 > /c/one; stat -c '%a %u:%g' /c > /1
RUN --mount=type=cache,target=/c,id=one cat /c/one > /2
RUN --mount=type=cache,target=/c,id=owned,uid=5,gid=6,mode=0700 stat -c '%a %u:%g' /c > /3
RUN --mount=type=cache,target=/c,id=private,sharing=private touch /c/x; ls /c > /4
RUN --mount=type=cache,target=/c,id=locked,sharing=locked ls /c > /5
RUN --mount=type=cache,target=/c,id=ro,readonly touch /c/y || echo no > /6
RUN --mount=type=cache,target=/c,id=from,from=base,source=/etc ls /c > /7
ENV CACHE=/env/cache
RUN --mount=type=cache,target=${CACHE},id=env echo "$CACHE" > /8
