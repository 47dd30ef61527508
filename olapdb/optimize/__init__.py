"""Rules, plan to plan, that change how an answer is found and never the answer.

`optimize(plan)` applies `RULES` in their order; each is a function from node to node in a file of
its own. The schema of the root stays the same, and that is asserted.
"""

from olapdb.optimize.optimizer import RULES, optimize

__all__ = ["RULES", "optimize"]
