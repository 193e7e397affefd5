FROM rich
LABEL both=mine mine=1
ENV BOTH=mine MINE=1
EXPOSE 81
VOLUME /mine
