"""The engine's things as the API shows them: pure functions from records to wire types, one module per resource."""
