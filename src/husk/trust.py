"""Trust in the other side of TLS, for clients: by the host's authorities, or by one that was named."""

import ssl


def trusting(authority: str | None = None) -> ssl.SSLContext:
    """Verify the other side by the host's authorities, or by those in a file. OSError where it cannot be read.

    From Python 3.13 on certificates without the extensions that RFC 5280 wants of authorities would be refused. Docker
    takes them, and those that people make by hand often lack some.
    """
    context = ssl.create_default_context(cafile=authority)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
