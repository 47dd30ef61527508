"""How tight operators bind, from loose to tight, as in ClickHouse."""

from __future__ import annotations

(
    LAMBDA,
    TERNARY,
    OR,
    AND,
    NOT,
    IS,
    BETWEEN,
    COMPARE,
    CONCAT,
    ADD,
    MULTIPLY,
    ZONE,
    NEGATE,
    POSTFIX,
) = range(1, 15)
