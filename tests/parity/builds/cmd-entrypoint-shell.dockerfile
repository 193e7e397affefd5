FROM base
CMD echo hi "$HOME"
ENTRYPOINT exec top -b
