FROM base
HEALTHCHECK --interval=5m --timeout=3s --start-period=1m30s --start-interval=2s --retries=3 CMD curl -f http://localhost/ || exit 1
