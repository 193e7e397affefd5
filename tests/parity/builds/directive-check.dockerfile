# check=skip=all
FROM base as lower
MAINTAINER somebody
CMD echo x
