"""The engine's things as the API shows them: pure functions from records to wire types, one module per resource.

Handlers in `routes` call them; they ask nobody, and change nothing."""
