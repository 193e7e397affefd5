"""Statements about the results of builds: where a result comes from (provenance), and what is in it (SBOM).

`wanted` reads what a client asks for. When a result is made, `attester` looks at its graph and at what the build has
told: `materials` knows which image, commit or file a source was, `slsa` makes
the document of provenance of it. `sbom` runs the generator that the client names, as a step on the result.

The documents are `results.Predicate`s of the result. `exporters` makes statements of them, and the history of builds
keeps one with all that is known, whatever the client has asked for.
"""
