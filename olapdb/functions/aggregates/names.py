"""The aliases of aggregates, and the names whose case does not matter."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from olapdb.types.families import RESPECTING_NULLS

MAPPED_ARRAYS: Mapping[str, str] = MappingProxyType(
    {
        "sumMappedArrays": "sum",
        "minMappedArrays": "min",
        "maxMappedArrays": "max",
        "sumMapWithOverflow": "sumWithOverflow",
        "sumMapFiltered": "sum",
        "sumMapFilteredWithOverflow": "sumWithOverflow",
    }
)
"""sumMap of arrays under other names: the aggregate of the values of each key, by name."""

CANONICAL = MappingProxyType(
    {
        "any_value": "any",
        **RESPECTING_NULLS,
        "kolmogorovsmirnovtest": "kolmogorovSmirnovTest",
        "approx_top_count": "approx_top_k",
        "lttb": "largestTriangleThreeBuckets",
        "analysisofvariance": "analysisOfVariance",
        "anova": "analysisOfVariance",
        "sparkBar": "sparkbar",
        "median": "quantile",
        "std": "stddevPop",
        "stddev_pop": "stddevPop",
        "stddev_samp": "stddevSamp",
        "var_pop": "varPop",
        "var_samp": "varSamp",
        "stddev": "stddevSamp",
        "array_agg": "groupArray",
        "bit_and": "groupBitAnd",
        "bit_or": "groupBitOr",
        "bit_xor": "groupBitXor",
        "max_by": "argMax",
        "min_by": "argMin",
        "medianExact": "quantileExact",
        "medianExactLow": "quantileExactLow",
        "medianExactHigh": "quantileExactHigh",
        "medianDeterministic": "quantileDeterministic",
        "medianExactWeighted": "quantileExactWeighted",
        "medianBFloat16": "quantileBFloat16",
        "medianBFloat16Weighted": "quantileBFloat16Weighted",
        "medianTimingWeighted": "quantileTimingWeighted",
        "medianTDigestWeighted": "quantileTDigestWeighted",
        "medianInterpolatedWeighted": "quantileInterpolatedWeighted",
        "medianExactWeightedInterpolated": "quantileExactWeightedInterpolated",
        "medianGK": "quantileGK",
        "medianDD": "quantileDD",
        "medianTDigest": "quantileTDigest",
        "medianTiming": "quantileTiming",
        "covar_pop": "covarPop",
        "covar_samp": "covarSamp",
        "group_concat": "groupConcat",
        "string_agg": "groupConcat",
    }
)
CASE_INSENSITIVE = frozenset(
    {
        "count",
        "sum",
        "min",
        "max",
        "avg",
        "any",
        "any_value",
        "median",
        "std",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "var_pop",
        "var_samp",
        "first_value",
        "last_value",
        "array_agg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "max_by",
        "min_by",
        "corr",
        "covar_pop",
        "covar_samp",
        "group_concat",
        "string_agg",
        "kolmogorovsmirnovtest",
        "analysisofvariance",
        "anova",
        "approx_top_count",
        "approx_top_k",
        "approx_top_sum",
        "array_concat_agg",
        "regr_slope",
        "regr_intercept",
        "regr_r2",
        "regr_count",
        "regr_avgx",
        "regr_avgy",
        "regr_sxx",
        "regr_syy",
        "regr_sxy",
        "any_value_respect_nulls",
        "first_value_respect_nulls",
        "last_value_respect_nulls",
    }
)
"""Names that are known in every case; they are spelt in lower case here."""

COMBINED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"array_concat_agg": ("groupArray", "Array")}
)
"""Aliases of an aggregate with a combinator, which are case-insensitive."""

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("aggThrow", "nothing", "nothingNull", "nothingUInt64"),
            "it serves ClickHouse's own tests and plans",
        ),
        "flameGraph": "it reads addresses of ClickHouse's own code",
        "estimateCompressionRatio": "it measures ClickHouse's own codecs",
        **dict.fromkeys(
            ("hierarchicalKMeans", "mergedJSONPatch", "MVTEncode", "ST_AsMVT", "groupFormat"),
            "it is not there yet",
        ),
        **{
            f"timeSeries{kind}": "ClickHouse has it in private preview"
            for kind in ("BottomKMasks", "LimitKMasks", "TopKMasks")
        },
    }
)
"""Aggregates of ClickHouse that are refused by name, and why."""
