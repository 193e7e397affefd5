FROM base
ENV V=value E= P=path/to/file.tar.gz
ENV A=${V:-d} B=${E:-d} C=${U:-d} D=${E-d} F=${U-d}
ENV G=${V:+s} H=${E:+s} I=${U:+s} J=${E+s} K=${U+s}
ENV L=${P#*/} M=${P##*/} N=${P%.*} O=${P%%.*} Q=${P/to/from} R=${P//t/T}
ENV S=${P#path?} T=${V#x} W=${P%/*} X=${U:-${V}} Y=${V:?msg} Z=${P/%gz/zz}
