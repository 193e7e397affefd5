FROM triggers
RUN cat /copied > /cat
