FROM base
WORKDIR /work
COPY a.txt .
COPY a.txt sub/
COPY a.txt sub/named
COPY dir ./
COPY ./b.txt ./c/../d
COPY dir/../a.txt /e
COPY /a.txt /f
