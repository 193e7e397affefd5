FROM base
RUN \
  echo 1 > /1 && \
  echo 2 > /2
RUN echo "a\
b" > /3
RUN echo 'single \
quoted' > /4
