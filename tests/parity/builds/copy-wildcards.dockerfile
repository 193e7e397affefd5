FROM base
COPY *.txt /star/
COPY dir/*/*.txt /two/
COPY ?.txt /one/
COPY [ab].txt /class/
COPY [^a].txt /notclass/
COPY d* /dirs/
COPY dir/deep/.h* /hidden/
COPY [[]odd].txt /odd/
