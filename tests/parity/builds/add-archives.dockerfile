FROM base
ADD archive.tar /tar/
ADD archive.tar.gz /gz/
ADD archive.tar.xz /xz/
ADD archive.tar.bz2 /bz2/
ADD notarchive.tar /plain/
ADD a.txt /a/
ADD dir /dir/
