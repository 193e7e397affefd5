FROM base
RUN cat <<one > /1 && cat <<two > /2
first $HOME
one
second
two
RUN cat 3<<EOF <&3 > /3
third
EOF
