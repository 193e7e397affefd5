FROM rich
ENTRYPOINT ["/bin/true"]
