"""Builds by the classic API (`POST /build`): `build` carries them out, `progress` tells of them as dockerd does.

`history_cache` knows images by their history (`--cache-from`), `seen_steps` remembers instructions that change no file.
"""
