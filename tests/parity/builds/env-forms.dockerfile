FROM base
ENV OLD form with   spaces
ENV A=1 B="two words" C=three\ words D='single $A' E="double $A"
ENV F=$A-$B G=${A}x H=\$A I="\"q\"" J='it'"'"'s'
ENV K= L="" M=a=b=c
ENV PATH=/opt/bin:$PATH
ENV A=again
ENV N=$A
