"""Streams as a client sees them: frames of output, progress as lines, and detach keys on the way in."""
