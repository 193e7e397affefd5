FROM base
ENV A=one
ENV B=${X:-${Y:-${A}-end}} C="${X:-q q}" D=${X:-'s s'} E=${A:+${A}${A}} F=pre${A}post G=$A$A H=${A}_$A. I=$1x K=a\$
