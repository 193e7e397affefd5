FROM base AS one
CMD ["one"]
FROM one
ENTRYPOINT ["two"]
