FROM scratch
COPY empty /
COPY empty /e
COPY empty /f/
