"""Layers in the form that can be mounted: `store` tells the life of one.

- `directories`: where their files are, and who needs them; `trash` deletes what nobody needs any more, out of sight
- `ingest`: a layer on its way in, through a worker that unpacks it; `chain`: how layers are named by what they stand on
- `writeback`: when are the files of a layer on the disk; `recover` makes them again after a power cut, of which `power`
  knows; `soundness` tells whether a layer that is here is whole
"""
