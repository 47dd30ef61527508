"""The factories of the aggregates without combinators, by name: from name, parameters and argument
types. Each lies beside its aggregate."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from olapdb.functions.aggregates.deferred import deferred
from olapdb.functions.aggregates.families import FAMILIES
from olapdb.functions.aggregates.signatures import ResolveAggregate

_average_of_any = deferred("sums.average_of_any")
_group_concat = deferred("concatenation.group_concat")
_entropy = deferred("counted_values.entropy")
_top_k = deferred("counted_values.top_k")
_covariance = deferred("covariance.covariance")
_distinct_paths = deferred("json_paths.distinct_paths")
_distinct_types = deferred("json_paths.distinct_types")
_group_bitmap = deferred("distinct.group_bitmap")
_uniq = deferred("distinct.uniq")
_delta_sum = deferred("events.delta_sum")
_retention = deferred("events.retention")
_window_funnel = deferred("events.window_funnel")
_exact_quantile = deferred("exact_quantile.exact_quantile")
_interpolated_quantile = deferred("exact_quantile.interpolated_quantile")
_extreme = deferred("extremes.extreme")
_extreme_argument = deferred("extremes.extreme_argument")
_intervals = deferred("gathered.intervals")
_moving_sum = deferred("gathered.moving_sum")
_rank_correlation = deferred("gathered.rank_correlation")
_higher_moment = deferred("higher_moments.higher_moment")
_limited_array = deferred("limited_arrays.limited_array")
_group_array = deferred("ordered.group_array")
_positional = deferred("ordered.positional")
_positional_with_nulls = deferred("ordered.positional_with_nulls")
_deterministic_quantile = deferred("quantile.deterministic_quantile")
_quantile = deferred("quantile.quantile")
_regression = deferred("regression.regression")
_average = deferred("sums.average")
_bitwise = deferred("sums.bitwise")
_count = deferred("sums.count")
_total = deferred("sums.total")
_weighted_average = deferred("sums.weighted_average")
_variance = deferred("variance.variance")
_weighted_quantile = deferred("weighted_quantile.weighted_quantile")

REGRESSIONS = (
    *("regr_slope", "regr_intercept", "regr_r2", "regr_count", "regr_avgx", "regr_avgy"),
    *("regr_sxx", "regr_syy", "regr_sxy", "simpleLinearRegression"),
)
_QUANTILE_KINDS: Mapping[str, ResolveAggregate] = MappingProxyType(
    {
        "": _quantile,
        "TDigest": _quantile,
        "Timing": _quantile,
        "Exact": _exact_quantile,
        "ExactLow": _exact_quantile,
        "ExactHigh": _exact_quantile,
        "ExactInclusive": _interpolated_quantile,
        "ExactExclusive": _interpolated_quantile,
        "ExactWeighted": _weighted_quantile,
        "Deterministic": _deterministic_quantile,
    }
)
"""What follows `_quantile` or `quantiles` in a name."""

FACTORIES: Mapping[str, ResolveAggregate] = MappingProxyType(
    {
        "count": _count,
        "sum": _total,
        "sumWithOverflow": _total,
        "avg": _average_of_any,
        "min": _extreme,
        "max": _extreme,
        "any": _extreme,
        "argMin": _extreme_argument,
        "argMax": _extreme_argument,
        "anyLast": _positional,
        "any_respect_nulls": _positional_with_nulls,
        "anyLast_respect_nulls": _positional_with_nulls,
        "first_value": _positional,
        "last_value": _positional,
        "uniq": _uniq,
        "uniqExact": _uniq,
        "groupArray": _group_array,
        "groupUniqArray": _group_array,
        "groupConcat": _group_concat,
        "distinctJSONPaths": _distinct_paths,
        "distinctJSONPathsAndTypes": _distinct_paths,
        "distinctDynamicTypes": _distinct_types,
        "topK": _top_k,
        "topKWeighted": _top_k,
        "entropy": _entropy,
        "uniqCombined": _uniq,
        "uniqCombined64": _uniq,
        "uniqHLL12": _uniq,
        "groupBitmap": _group_bitmap,
        **{
            f"{name}{suffix}": _variance
            for name in ("stddevPop", "stddevSamp", "varPop", "varSamp")
            for suffix in ("", "Stable")
        },
        "skewPop": _higher_moment,
        "skewSamp": _higher_moment,
        "kurtPop": _higher_moment,
        "kurtSamp": _higher_moment,
        "groupBitAnd": _bitwise,
        "groupBitOr": _bitwise,
        "groupBitXor": _bitwise,
        "sumCount": _average,
        "avgWeighted": _weighted_average,
        **{
            f"{name}{suffix}": _covariance
            for name in ("covarPop", "covarSamp", "corr")
            for suffix in ("", "Stable")
        },
        "retention": _retention,
        "windowFunnel": _window_funnel,
        "deltaSum": _delta_sum,
        **dict.fromkeys(("groupArrayMovingSum", "groupArrayMovingAvg"), _moving_sum),
        **dict.fromkeys(
            ("maxIntersections", "maxIntersectionsPosition", "intervalLengthSum"), _intervals
        ),
        "rankCorr": _rank_correlation,
        "groupArraySorted": _limited_array,
        "groupArrayLast": _limited_array,
        **dict.fromkeys(REGRESSIONS, _regression),
        **FAMILIES,
        **{
            f"{plural}{kind}": factory
            for plural in ("quantile", "quantiles")
            for kind, factory in _QUANTILE_KINDS.items()
        },
    }
)
