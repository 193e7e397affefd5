FROM base
# a comment

RUN echo one \
  # inside

  && echo two \
    # indented
  > /two
   # before an instruction
   ENV   X=1     Y=2
