FROM base
ENV V=1
LABEL a=1 b="two words" c=three\ words "d e"=f 'g'='h $V' i="j $V" k.l-m/n=o
LABEL multi="line one \
line two" empty=
LABEL old style label
LABEL "com.example.json"="{\"a\": [1, 2]}"
LABEL a=again
