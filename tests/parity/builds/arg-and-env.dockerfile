FROM base
ARG VALUE=arg
ENV VALUE=env
RUN echo $VALUE > /value
ARG VALUE=later
RUN echo $VALUE > /value2
ENV COPIED=${VALUE}-x
