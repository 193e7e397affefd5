FROM base
RUN echo one \
  two > /1
ENV A=b
