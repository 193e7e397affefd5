FROM base AS build-1.2_x
RUN echo x > /x
FROM scratch
COPY --from=build-1.2_x /x /y
