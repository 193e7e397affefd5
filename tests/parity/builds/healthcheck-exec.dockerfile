FROM base
HEALTHCHECK --interval=1500ms CMD ["true", "$HOME"]
