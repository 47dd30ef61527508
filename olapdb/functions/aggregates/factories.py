"""The factories of the aggregates without combinators, by name: from name, parameters and argument
types. Each lies beside its aggregate."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from olapdb.functions.aggregates.average_times import average_of_any
from olapdb.functions.aggregates.concatenation import group_concat
from olapdb.functions.aggregates.counted_values import entropy, top_k
from olapdb.functions.aggregates.covariance import covariance
from olapdb.functions.aggregates.distinct import group_bitmap, uniq
from olapdb.functions.aggregates.events import delta_sum, retention, window_funnel
from olapdb.functions.aggregates.exact_quantile import exact_quantile, interpolated_quantile
from olapdb.functions.aggregates.extremes import extreme, extreme_argument
from olapdb.functions.aggregates.families import FAMILIES
from olapdb.functions.aggregates.gathered import intervals, moving_sum, rank_correlation
from olapdb.functions.aggregates.higher_moments import higher_moment
from olapdb.functions.aggregates.limited_arrays import limited_array
from olapdb.functions.aggregates.ordered import group_array, positional, positional_with_nulls
from olapdb.functions.aggregates.quantile import deterministic_quantile, quantile
from olapdb.functions.aggregates.regression import REGRESSIONS, regression
from olapdb.functions.aggregates.signatures import ResolveAggregate
from olapdb.functions.aggregates.sums import average, bitwise, count, total, weighted_average
from olapdb.functions.aggregates.variance import variance
from olapdb.functions.aggregates.weighted_quantile import weighted_quantile

_QUANTILE_KINDS: Mapping[str, ResolveAggregate] = MappingProxyType(
    {
        "": quantile,
        "TDigest": quantile,
        "Timing": quantile,
        "Exact": exact_quantile,
        "ExactLow": exact_quantile,
        "ExactHigh": exact_quantile,
        "ExactInclusive": interpolated_quantile,
        "ExactExclusive": interpolated_quantile,
        "ExactWeighted": weighted_quantile,
        "Deterministic": deterministic_quantile,
    }
)
"""What follows `quantile` or `quantiles` in a name."""

FACTORIES: Mapping[str, ResolveAggregate] = MappingProxyType(
    {
        "count": count,
        "sum": total,
        "sumWithOverflow": total,
        "avg": average_of_any,
        "min": extreme,
        "max": extreme,
        "any": extreme,
        "argMin": extreme_argument,
        "argMax": extreme_argument,
        "anyLast": positional,
        "any_respect_nulls": positional_with_nulls,
        "anyLast_respect_nulls": positional_with_nulls,
        "first_value": positional,
        "last_value": positional,
        "uniq": uniq,
        "uniqExact": uniq,
        "groupArray": group_array,
        "groupUniqArray": group_array,
        "groupConcat": group_concat,
        "topK": top_k,
        "topKWeighted": top_k,
        "entropy": entropy,
        "uniqCombined": uniq,
        "uniqCombined64": uniq,
        "uniqHLL12": uniq,
        "groupBitmap": group_bitmap,
        **{
            f"{name}{suffix}": variance
            for name in ("stddevPop", "stddevSamp", "varPop", "varSamp")
            for suffix in ("", "Stable")
        },
        "skewPop": higher_moment,
        "skewSamp": higher_moment,
        "kurtPop": higher_moment,
        "kurtSamp": higher_moment,
        "groupBitAnd": bitwise,
        "groupBitOr": bitwise,
        "groupBitXor": bitwise,
        "sumCount": average,
        "avgWeighted": weighted_average,
        **{
            f"{name}{suffix}": covariance
            for name in ("covarPop", "covarSamp", "corr")
            for suffix in ("", "Stable")
        },
        "retention": retention,
        "windowFunnel": window_funnel,
        "deltaSum": delta_sum,
        **dict.fromkeys(("groupArrayMovingSum", "groupArrayMovingAvg"), moving_sum),
        **dict.fromkeys(
            ("maxIntersections", "maxIntersectionsPosition", "intervalLengthSum"), intervals
        ),
        "rankCorr": rank_correlation,
        "groupArraySorted": limited_array,
        "groupArrayLast": limited_array,
        **dict.fromkeys(REGRESSIONS, regression),
        **FAMILIES,
        **{
            f"{plural}{kind}": factory
            for plural in ("quantile", "quantiles")
            for kind, factory in _QUANTILE_KINDS.items()
        },
    }
)
