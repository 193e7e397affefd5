FROM scratch
COPY a.txt /one/two/three/a
COPY --chown=5:6 a.txt /four/five/
