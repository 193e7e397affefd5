FROM base
ADD --chown=9:10 archive.tar /owned/
ADD --unpack=false archive.tar /packed/
ADD --unpack=true archive.tar.gz /unpacked/
ADD --link archive.tar /linked/
ADD archive.tar archive.tar.gz /two/
