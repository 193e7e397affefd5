"""The directories of volumes (`store`, which tells how a crash is survived), their mounts (`options`) and their first
content (`copies`). `engine/volumes` decides who has one, and is the only one who calls this.
"""
