FROM base
ONBUILD COPY a.txt /from-trigger
ONBUILD RUN echo triggered > /triggered
ONBUILD ENV T=$X
onbuild   label a=b
