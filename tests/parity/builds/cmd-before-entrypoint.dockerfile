FROM rich
CMD ["mine"]
ENTRYPOINT ["/bin/true"]
