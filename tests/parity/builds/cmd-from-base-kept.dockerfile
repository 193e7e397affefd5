FROM rich
CMD ["other"]
