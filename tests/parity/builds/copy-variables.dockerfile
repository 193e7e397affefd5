FROM base
ENV S=a.txt D=/dest
ARG N=b
COPY $S ${D}/
COPY ${N}.txt $D/${N:-x}
ADD ["${S}", "$D/added file"]
