FROM base
COPY ["with space.txt", "/a place/"]
COPY ["a.txt", "b.txt", "/x/"]
