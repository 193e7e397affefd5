FROM base
RUN mkdir /real && ln -s /real /sym
WORKDIR /sym/below
RUN pwd > here
