FROM base
CMD ["echo", 'x']
ENTRYPOINT [ "a" "b" ]
