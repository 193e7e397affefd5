FROM base AS source
RUN echo src > /src
FROM base AS trig
ONBUILD COPY --from=source /src /dst
FROM trig
