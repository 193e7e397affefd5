FROM base
ENTRYPOINT ["echo", "a b"]
CMD ["-n", "\"x\""]
