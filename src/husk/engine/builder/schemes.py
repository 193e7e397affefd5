"""What the identifier of a source begins with, by the kind of the source."""

IMAGE = "docker-image"
LOCAL = "local"
GIVEN = "stack"
GIT = "git"
LAYOUT = "oci-layout"
WEB = ("http", "https")
