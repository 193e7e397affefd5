# escape=`
FROM base
COPY a.txt /win`
dows
ENV A=`$HOME B="x`"y"
RUN echo one `
  && echo two > /two
LABEL path=C:\dir
