FROM base
COPY link /one
COPY dirlink /two
COPY dirlink/one.txt /four
