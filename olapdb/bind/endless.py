"""Sources without an end, such as system.numbers: which queries of them can never answer."""

from __future__ import annotations

from olapdb.plan import nodes as plan


def is_endless(node: plan.Node) -> bool:
    """Return whether the node reads numbers without end that no LIMIT below it ends."""
    match node:
        case plan.Numbers(count=None) | plan.Primes(count=None) | plan.Loop():
            return True
        case plan.Limit(count=count) if count is not None:
            return False
        case plan.RelativeLimit(count=count) if isinstance(count, int) and count >= 0:
            return False
        case _:
            return any(map(is_endless, node.children()))
