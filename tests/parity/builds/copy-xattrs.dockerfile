FROM base
COPY noted /noted
