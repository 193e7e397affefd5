FROM base
COPY . /all/
