FROM base
COPY uni-ü.txt /ü/
COPY uni-* /x/
