FROM base
RUN <<EOF
echo one > /one
echo "$HOME" > /home-is
EOF
RUN <<'EOF' cat > /quoted
$HOME and \n
EOF
RUN <<-EOF
	echo tabbed > /tabbed
		echo more >> /tabbed
	EOF
RUN <<EOF
#!/bin/sh -e
echo "a script of its own: $0" > /script
EOF
RUN cat <<A - <<"B" > /both
in a
A
in b
B
