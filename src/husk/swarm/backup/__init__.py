"""Backup and restore of a whole swarm: its file (`file`), the records to bring back (`restored`, pure), both ways
(`backups`).
"""
