"""What functions do with a Variant: its Arrow form, casts, functions of its alternatives, and functions of its own.

`values` takes columns apart and puts them together, `casts` converts, `texts` finds the alternative of a text,
`calls` computes a function of each alternative, `definitions` has variantElement and variantType."""

from __future__ import annotations

MODULES = ("definitions",)
"""The modules with `DEFINITIONS`, in their order."""
