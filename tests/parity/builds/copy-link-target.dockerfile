FROM base
RUN mkdir /real && ln -s real /sym
COPY --link a.txt /sym/a
