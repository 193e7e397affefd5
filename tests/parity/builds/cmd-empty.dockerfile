FROM rich
CMD []
