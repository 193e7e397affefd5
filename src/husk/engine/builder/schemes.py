"""What the identifier of a source begins with, by the kind of the source."""

IMAGE = "docker-image"
LOCAL = "local"
GIVEN = "stack"
PROOF = "stack.proof"  # an attribute of these (`given`), which is no part of what the source is
GIT = "git"
LAYOUT = "oci-layout"
WEB = ("http", "https")
