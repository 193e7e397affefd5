# just a comment
# escape=`
FROM base
RUN echo a \
 b > /ab
