FROM base
ENV X=1
MAINTAINER Some Body <some@body> $X
