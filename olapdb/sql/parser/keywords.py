"""The words to which the grammar gives a meaning, by context."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """Return the set of the words that blanks separate in a text."""
    return frozenset(text.split())


RESERVED_OPERANDS = words(
    "SELECT FROM WHERE PREWHERE HAVING UNION AND OR AS THEN ELSE BETWEEN LIKE ILIKE "
    "JOIN USING ON IN IS"
)
"""Words that cannot be the name of a column where a value is expected, unless quoted."""

NOT_AN_ALIAS = words(
    "ALL AND ANTI ANY ARRAY AS ASOF BETWEEN BY CROSS DIV ELSE END "
    "EXCEPT FETCH FILTER FINAL FORMAT FROM FULL GLOBAL GROUP HAVING IGNORE ILIKE IN INNER "
    "INTERPOLATE INTERSECT INTO IS JOIN LEFT LIKE LIMIT LOCAL MOD NATURAL NOT NULLS OFFSET ON "
    "ONLY OR ORDER OVER PASTE PREWHERE QUALIFY REGEXP RESPECT RIGHT SAMPLE SELECT SEMI SET "
    "SETTINGS THEN UNION USING WHEN WHERE WINDOW WITH"
)
"""Words that cannot be an alias whose AS was left out."""

DIRECTIONS = words("ASC ASCENDING DESC DESCENDING")
"""Words that say how ORDER BY sorts. Elsewhere they are names like others: `FROM t desc`."""

LITERAL_WORDS = words("NULL TRUE FALSE INF INFINITY NAN")

MUST_QUOTE = (
    RESERVED_OPERANDS
    | NOT_AN_ALIAS
    | DIRECTIONS
    | LITERAL_WORDS
    | words("CASE INTERVAL EXISTS COLUMNS DISTINCT TABLE TOP VALUES")
)
"""Names that canonical texts, which are stored, have in backquotes."""

QUOTED_WHERE_SHOWN = words("ALL DISTINCT FALSE FROM INF NAN NULL SELECT TABLE TOP TRUE VALUES")
"""Names that ClickHouse shows in backquotes even where a name must follow, as behind AS."""

SHOWN_BARE = MUST_QUOTE - (
    QUOTED_WHERE_SHOWN | RESERVED_OPERANDS | words("CASE ELSE INFINITY NOT WITH")
)
"""Names of MUST_QUOTE that people are shown without backquotes, since the parser reads them so."""

INTERVAL_UNITS = {
    spelling: unit
    for unit, spellings in {
        "Nanosecond": "NANOSECOND NANOSECONDS NS",
        "Microsecond": "MICROSECOND MICROSECONDS US",
        "Millisecond": "MILLISECOND MILLISECONDS MS",
        "Second": "SECOND SECONDS SS S SQL_TSI_SECOND",
        "Minute": "MINUTE MINUTES MI N SQL_TSI_MINUTE",
        "Hour": "HOUR HOURS HH H SQL_TSI_HOUR",
        "Day": "DAY DAYS DD D SQL_TSI_DAY",
        "Week": "WEEK WEEKS WK WW SQL_TSI_WEEK",
        "Month": "MONTH MONTHS MM M SQL_TSI_MONTH",
        "Quarter": "QUARTER QUARTERS QQ Q SQL_TSI_QUARTER",
        "Year": "YEAR YEARS YYYY YY SQL_TSI_YEAR",
    }.items()
    for spelling in spellings.split()
}
"""Maps every spelling of a unit, in capitals, to its name in `types.Interval`."""
