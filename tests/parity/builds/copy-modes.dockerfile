FROM base
COPY setuid private run.sh /
COPY --chmod=755 private /octal
COPY --chmod=u=rw,go=r setuid /symbolic
COPY --chmod=a+x private /plus
COPY --chmod=go-r,u+s a.txt /minus
COPY --chmod=0750 dir /tree
COPY --chmod=a+X dir /treeX
