FROM base
RUN --mount=type=secret,id=s cat /run/secrets/s | md5sum > /1; stat -c '%a %u:%g' /run/secrets/s >> /1
RUN --mount=type=secret,id=s,target=/x/y,mode=0444,uid=1,gid=2 stat -c '%a %u:%g' /x/y > /2
RUN --mount=type=secret,id=absent ls /run/secrets > /3 2>&1 || true
RUN --mount=type=secret,id=s,env=TOKEN echo -n "$TOKEN" | md5sum > /4
RUN --mount=type=secret,id=e,target=/e,required md5sum < /e > /5
