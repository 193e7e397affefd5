FROM base
COPY --exclude=*.log dir /1/
COPY --exclude=**/*.txt --exclude=deep/.h* dir /2/
COPY --exclude=*.txt dir/deep dir/one.txt /3/
COPY --from=rich --exclude=group /etc /4/
