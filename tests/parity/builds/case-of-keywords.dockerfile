from base As First
run echo 1 > /1
From first
eNv k=v
copy --from=FIRST /1 /2
