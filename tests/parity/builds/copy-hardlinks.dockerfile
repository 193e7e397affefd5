FROM base
COPY hard1 hard2 /h/
COPY . /c/
