"""TPC-H in small: its tables, filled by SQL that ClickHouse and olapdb both run, and its queries.

The values are not those of dbgen, but have their domains, keys and relations, so that each query
selects and joins as it should. The 22 queries (`tpch.sql`) are those of the specification.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_NATIONS = (
    *(("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4)),
    *(("ETHIOPIA", 0), ("FRANCE", 3), ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2)),
    *(("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0), ("MOROCCO", 0)),
    *(("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4)),
    *(("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1)),
)
_COLOURS = [
    "almond",
    "azure",
    "blue",
    "forest",
    "green",
    "ivory",
    "khaki",
    "lemon",
    "linen",
    "rose",
    "snow",
    "white",
]
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_MODES = ("AIR", "AIR REG", "FOB", "MAIL", "RAIL", "SHIP", "TRUCK")
_INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
_TYPES = (
    ["ECONOMY", "LARGE", "MEDIUM", "PROMO", "SMALL", "STANDARD"],
    ["ANODIZED", "BRUSHED", "BURNISHED", "PLATED", "POLISHED"],
    ["BRASS", "COPPER", "NICKEL", "STEEL", "TIN"],
)
_CONTAINERS = (["JUMBO", "LG", "MED", "SM", "WRAP"], ["BAG", "BOX", "CASE", "JAR", "PACK", "PKG"])

SCHEMA = {
    "region": "r_regionkey Int64, r_name String, r_comment String",
    "nation": "n_nationkey Int64, n_name String, n_regionkey Int64, n_comment String",
    "supplier": "s_suppkey Int64, s_name String, s_address String, s_nationkey Int64, "
    "s_phone String, s_acctbal Decimal(15, 2), s_comment String",
    "customer": "c_custkey Int64, c_name String, c_address String, c_nationkey Int64, "
    "c_phone String, c_acctbal Decimal(15, 2), c_mktsegment String, c_comment String",
    "part": "p_partkey Int64, p_name String, p_mfgr String, p_brand String, p_type String, "
    "p_size Int32, p_container String, p_retailprice Decimal(15, 2), p_comment String",
    "partsupp": "ps_partkey Int64, ps_suppkey Int64, ps_availqty Int32, "
    "ps_supplycost Decimal(15, 2), ps_comment String",
    "orders": "o_orderkey Int64, o_custkey Int64, o_orderstatus String, "
    "o_totalprice Decimal(15, 2), o_orderdate Date32, o_orderpriority String, o_clerk String, "
    "o_shippriority Int32, o_comment String",
    "lineitem": "l_orderkey Int64, l_partkey Int64, l_suppkey Int64, l_linenumber Int32, "
    "l_quantity Decimal(15, 2), l_extendedprice Decimal(15, 2), l_discount Decimal(15, 2), "
    "l_tax Decimal(15, 2), l_returnflag String, l_linestatus String, l_shipdate Date32, "
    "l_commitdate Date32, l_receiptdate Date32, l_shipinstruct String, l_shipmode String, "
    "l_comment String",
}
_KEYS = {
    "region": "r_regionkey",
    "nation": "n_nationkey",
    "supplier": "s_suppkey",
    "customer": "c_custkey",
    "part": "p_partkey",
    "partsupp": "ps_partkey, ps_suppkey",
    "orders": "o_orderkey",
    "lineitem": "l_orderkey, l_linenumber",
}
_LINES = 7
"""Lines of an order."""


def statements(orders: int) -> Iterator[str]:
    """Yield the statements that create and fill the tables; the others grow with the orders."""
    for table, columns in SCHEMA.items():
        yield f"CREATE TABLE {table} ({columns}) ENGINE = MergeTree ORDER BY ({_KEYS[table]})"
        yield f"INSERT INTO {table} SELECT {_rows(table, orders)}"


def queries() -> dict[int, str]:
    """Return the 22 queries by their number."""
    text = (Path(__file__).parent / "tpch.sql").read_text(encoding="utf-8")
    return {int(number): query for number, query in re.findall(r"-- Q(\d+)\n(.*?);\n", text, re.S)}


def _rows(table: str, orders: int) -> str:
    """Return the columns and FROM of a table's rows."""
    suppliers, customers, parts = orders // 150, orders // 10, orders // 8
    numbers = {
        "region": ("r_regionkey", 5, ""),
        "nation": ("n_nationkey", 25, ""),
        "supplier": ("s_suppkey", suppliers, ""),
        "customer": ("c_custkey", customers, ""),
        "part": ("p_partkey", parts, ""),
        "partsupp": ("", parts * 4, ""),
        "orders": ("", orders, ""),
        "lineitem": ("", orders // 2 * _LINES, ""),
    }
    columns = {
        "region": f"number, {_of(_REGIONS, 'number')}, ''",
        "nation": f"number, {_of([n for n, _ in _NATIONS], 'number')}, "
        f"{_array([r for _, r in _NATIONS])}[number + 1], ''",
        "supplier": f"number + 1, concat('Supplier#', toString(number + 1)), 'address', "
        f"{_draw(1, 25)}, '27-918', {_money(2, 1_000_000)}, "
        f"if({_draw(3, 20)} = 0, 'the Customer had Complaints', 'quick')",
        "customer": f"number + 1, concat('Customer#', toString(number + 1)), 'address', "
        f"{_draw(4, 25)}, concat(toString(10 + {_draw(4, 25)}), '-555'), {_money(5, 1_000_000)}, "
        f"{_of(_SEGMENTS, _draw(6, 5))}, 'comment'",
        "part": f"number + 1, concat({_of(_COLOURS, _draw(7, 12))}, ' ', "
        f"{_of(_COLOURS, _draw(8, 12))}), 'Manufacturer#1', concat('Brand#', "
        f"toString(11 + {_draw(9, 5)} * 10 + {_draw(10, 5)})), {_words(_TYPES, 11)}, "
        f"1 + {_draw(14, 50)}, {_words(_CONTAINERS, 15)}, {_money(17, 100_000)}, 'comment'",
        "partsupp": f"intDiv(number, 4) + 1, {_supplier('intDiv(number, 4)', 'number', suppliers)}, "
        f"1 + {_draw(18, 9_999)}, {_money(19, 100_000)}, 'comment'",
        "orders": f"number * 4 + 1, {_customer(customers)}, if({_ordered('number')} < "
        f"toDate32('1995-06-17'), 'F', 'O'), {_money(21, 40_000_000)}, {_ordered('number')}, "
        f"{_of(_PRIORITIES, _draw(22, 5))}, 'Clerk', 0, "
        f"if({_draw(23, 30)} = 0, 'very special big requests', 'ironic')",
        "lineitem": _lines(suppliers, parts),
    }
    return f"{columns[table]} FROM numbers({numbers[table][1]})"


def _lines(suppliers: int, parts: int) -> str:
    """Return the columns of lineitem."""
    order = f"intDiv(number, {_LINES}) * 2"
    part, quantity = _draw(24, parts), f"(1 + {_draw(25, 50)})"
    shipped = f"({_ordered(order)} + 1 + {_draw(26, 121)})"
    received = f"({shipped} + 1 + {_draw(27, 30)})"
    old = "toDate32('1995-06-17')"
    return (
        f"({order}) * 4 + 1, {part} + 1, {_supplier(part, _draw(28, 4), suppliers)}, "
        f"number % {_LINES} + 1, {quantity}, toDecimal64({quantity} * (900 + {part} % 200), 2), "
        f"toDecimal64({_draw(29, 11)}, 2) / 100, toDecimal64({_draw(30, 9)}, 2) / 100, "
        f"if({received} > {old}, 'N', if({_draw(31, 2)} = 0, 'R', 'A')), "
        f"if({shipped} > {old}, 'O', 'F'), {shipped}, {_ordered(order)} + 30 + {_draw(32, 61)}, "
        f"{received}, {_of(_INSTRUCTIONS, _draw(33, 4))}, {_of(_MODES, _draw(34, 7))}, 'comment'"
    )


def _draw(salt: int, count: int, number: str = "number") -> str:
    """Return an expression of a number below `count`, drawn by the row's number."""
    return f"toInt64(intHash64(({number}) * 64 + {salt}) % {count})"


def _money(salt: int, cents: int) -> str:
    """Return an expression of an amount up to this many cents."""
    return f"toDecimal64({_draw(salt, cents)}, 2) / 100"


def _ordered(number: str) -> str:
    """Return the date of an order, by its position."""
    return f"(toDate32('1992-01-01') + {_draw(20, 2_406, number)})"


def _supplier(part: str, which: str, suppliers: int) -> str:
    """Return the key of one of the four suppliers of a part."""
    return f"({part} + ({which}) % 4 * {suppliers // 4}) % {suppliers} + 1"


def _customer(customers: int) -> str:
    """Return the key of a customer; each third has no order."""
    drawn = _draw(35, customers // 3 * 2)
    return f"intDiv({drawn}, 2) * 3 + {drawn} % 2 + 1"


def _array(values: object) -> str:
    """Return values as an array of SQL."""
    return str(list(values))  # type: ignore[call-overload]


def _of(values: object, position: str) -> str:
    """Return the value at a position from 0."""
    return f"{_array(values)}[{position} + 1]"


def _words(lists: tuple[list[str], ...], salt: int) -> str:
    """Return a text of one drawn word of each list."""
    words = [_of(words, _draw(salt + at, len(words))) for at, words in enumerate(lists)]
    return "concat(" + ", ' ', ".join(words) + ")"
