FROM scratch
COPY --from=base /etc/passwd /users
COPY --from=rich /etc/group /groups
