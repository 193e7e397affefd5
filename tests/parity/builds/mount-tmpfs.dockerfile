FROM base
RUN --mount=type=tmpfs,target=/t touch /t/x && ls /t > /1 && grep -c ' /t tmpfs' /proc/mounts > /2
RUN --mount=type=tmpfs,target=/t,size=1048576 df -k /t | tail -1 | awk '{print $2}' > /3
RUN ls -d /t > /4 2>/dev/null || echo gone > /4
