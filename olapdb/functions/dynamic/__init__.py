"""What functions, casts and formats do with Dynamic and JSON.

`stored` has the texts in which values are kept, `values` takes columns of Dynamic apart and puts them together,
`infer` finds the types of values in JSON texts, `objects` makes JSON of them, `render` writes it, `paths` takes
parts of it, `casts` converts, `calls` computes functions of each type, `order` compares, `definitions` has the
functions of these types."""

from __future__ import annotations

MODULES = ("definitions",)
"""The modules with `DEFINITIONS`, in their order."""
