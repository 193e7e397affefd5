ARG IMAGE=base
ARG TAG=latest
FROM ${IMAGE}:${TAG} AS final
ARG IMAGE
ARG TAG=other
RUN echo "$IMAGE $TAG" > /args
