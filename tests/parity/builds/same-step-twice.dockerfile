FROM base
RUN echo x > /x
RUN echo x > /x
COPY a.txt /a
COPY a.txt /a
