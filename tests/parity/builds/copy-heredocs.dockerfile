FROM base
ENV V=value
COPY <<EOF /plain
hello $V
EOF
COPY <<'EOF' /quoted
hello $V
EOF
COPY <<-EOF /dir/
	tabs go
EOF
COPY <<one <<two a.txt /many/
1
one
2 ${V}
two
COPY --chmod=0600 --chown=daemon:users <<"name.txt" /owned/
x
name.txt
ADD <<EOF /added
by add
EOF
