FROM base
RUN echo "$HTTP_PROXY|$https_proxy|$no_proxy" > /proxies
ARG no_proxy
RUN echo "$no_proxy" > /noproxy
ENV SEEN=$no_proxy
