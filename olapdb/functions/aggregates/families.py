"""The factories of the families of aggregates that have modules of their own, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from olapdb.functions.aggregates.deferred import deferred
from olapdb.functions.aggregates.signatures import ResolveAggregate

_approximate_top = deferred("approximate_top.approximate_top")
_arg_and_extreme = deferred("arg_and.arg_and_extreme")
_bounding_ratio = deferred("bounding.bounding_ratio")
_delta_sum_timestamp = deferred("bounding.delta_sum_timestamp")
_kahan_sum = deferred("compensated.kahan_sum")
_dependence = deferred("contingency.dependence")
_counted_quantile = deferred("counted_quantiles.counted_quantile")
_largest_triangles = deferred("downsampling.largest_triangles")
_sequence_match = deferred("event_patterns.sequence_match")
_any_heavy = deferred("frequent.any_heavy")
_single_value = deferred("frequent.single_value")
_uniq_up_to = deferred("frequent.uniq_up_to")
_histogram = deferred("histogram.histogram")
_gini = deferred("inequality.gini")
_information_value = deferred("inequality.information_value")
_covariance_matrix = deferred("matrices.covariance_matrix")
_mean_test = deferred("mean_tests.mean_test")
_sequence_next_node = deferred("next_nodes.sequence_next_node")
_exponential_moving_average = deferred("moving_average.exponential_moving_average")
_array_sample = deferred("placed_arrays.array_sample")
_insert_at = deferred("placed_arrays.insert_at")
_numeric_indexed_vector = deferred("numeric_vectors.numeric_indexed_vector")
_prometheus_quantile = deferred("prometheus_quantiles.prometheus_quantile")
_rank_test = deferred("rank_tests.rank_test")
_array_intersection = deferred("set_operations.array_intersection")
_bitmap_operation = deferred("set_operations.bitmap_operation")
_sparkbar = deferred("sparkbar.sparkbar")
_on_grid = deferred("time_series.on_grid")
_samples = deferred("time_series.samples")
_analysis_of_variance = deferred("variance_tests.analysis_of_variance")
_one_sample_test = deferred("variance_tests.one_sample_test")
_stochastic_regression = deferred("stochastic.stochastic_regression")

DEPENDENCES = ("cramersV", "cramersVBiasCorrected", "contingency", "theilsU")
MATRICES = ("covarPopMatrix", "covarSampMatrix", "corrMatrix")
QUANTILE_KINDS = (
    *("BFloat16", "BFloat16Weighted", "TimingWeighted", "TDigestWeighted"),
    *("InterpolatedWeighted", "ExactWeightedInterpolated", "GK", "DD"),
)
"""What follows `quantile` or `quantiles` in a name."""
TIME_SERIES_ON_GRID = (
    *(
        f"timeSeries{measure}ToGrid"
        for measure in (
            *("Avg", "Changes", "Count", "Delta", "Deriv", "Increase", "InstantDelta"),
            *("InstantRate", "Last", "Max", "Min", "PredictLinear", "Rate", "Resets", "Sum"),
            *("TimestampOfMax", "TimestampOfMin"),
        )
    ),
    "timeSeriesResampleToGridWithStaleness",
)
PLURALS = ("quantile", "quantiles")

FAMILIES: Mapping[str, ResolveAggregate] = MappingProxyType(
    {
        "anyHeavy": _any_heavy,
        **dict.fromkeys(("groupBitmapAnd", "groupBitmapOr", "groupBitmapXor"), _bitmap_operation),
        "groupArrayIntersect": _array_intersection,
        **dict.fromkeys(("sequenceMatch", "sequenceCount", "sequenceMatchEvents"), _sequence_match),
        "sequenceNextNode": _sequence_next_node,
        **dict.fromkeys(("argAndMin", "argAndMax"), _arg_and_extreme),
        "groupArrayInsertAt": _insert_at,
        "groupArraySample": _array_sample,
        "uniqUpTo": _uniq_up_to,
        **dict.fromkeys(DEPENDENCES, _dependence),
        "sparkbar": _sparkbar,
        **dict.fromkeys(("studentTTest", "welchTTest", "meanZTest"), _mean_test),
        **dict.fromkeys(("mannWhitneyUTest", "kolmogorovSmirnovTest"), _rank_test),
        **dict.fromkeys(MATRICES, _covariance_matrix),
        "exponentialMovingAverage": _exponential_moving_average,
        "largestTriangleThreeBuckets": _largest_triangles,
        **dict.fromkeys(("approx_top_k", "approx_top_sum"), _approximate_top),
        **{f"{plural}{kind}": _counted_quantile for plural in PLURALS for kind in QUANTILE_KINDS},
        **dict.fromkeys(
            (f"{plural}PrometheusHistogram" for plural in PLURALS), _prometheus_quantile
        ),
        "groupNumericIndexedVector": _numeric_indexed_vector,
        "histogram": _histogram,
        "gini": _gini,
        "categoricalInformationValue": _information_value,
        "analysisOfVariance": _analysis_of_variance,
        "studentTTestOneSample": _one_sample_test,
        **dict.fromkeys(
            ("stochasticLinearRegression", "stochasticLogisticRegression"), _stochastic_regression
        ),
        "boundingRatio": _bounding_ratio,
        "deltaSumTimestamp": _delta_sum_timestamp,
        "singleValueOrNull": _single_value,
        "sumKahan": _kahan_sum,
        **dict.fromkeys(TIME_SERIES_ON_GRID, _on_grid),
        **dict.fromkeys(("timeSeriesGroupArray", "timeSeriesLastTwoSamples"), _samples),
    }
)
