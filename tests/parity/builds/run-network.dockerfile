FROM base
RUN --network=none ip -o link | wc -l > /none
