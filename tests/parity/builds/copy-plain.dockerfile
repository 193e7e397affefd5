FROM base
COPY a.txt /
COPY a.txt /renamed
COPY a.txt b.txt /into/
COPY dir /dir-contents
COPY dir/ /dir-slash/
COPY . /all/
