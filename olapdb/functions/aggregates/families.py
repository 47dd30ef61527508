"""The factories of the families of aggregates that have modules of their own, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from olapdb.functions.aggregates.approximate_top import approximate_top
from olapdb.functions.aggregates.arg_and import arg_and_extreme
from olapdb.functions.aggregates.bounding import bounding_ratio, delta_sum_timestamp
from olapdb.functions.aggregates.compensated import kahan_sum
from olapdb.functions.aggregates.contingency import DEPENDENCES, dependence
from olapdb.functions.aggregates.counted_quantiles import KINDS, counted_quantile
from olapdb.functions.aggregates.downsampling import largest_triangles
from olapdb.functions.aggregates.event_patterns import sequence_match
from olapdb.functions.aggregates.frequent import any_heavy, single_value, uniq_up_to
from olapdb.functions.aggregates.histogram import histogram
from olapdb.functions.aggregates.inequality import gini, information_value
from olapdb.functions.aggregates.matrices import MATRICES, covariance_matrix
from olapdb.functions.aggregates.mean_tests import mean_test
from olapdb.functions.aggregates.moving_average import exponential_moving_average
from olapdb.functions.aggregates.numeric_vectors import numeric_indexed_vector
from olapdb.functions.aggregates.placed_arrays import array_sample, insert_at
from olapdb.functions.aggregates.rank_tests import rank_test
from olapdb.functions.aggregates.set_operations import array_intersection, bitmap_operation
from olapdb.functions.aggregates.signatures import ResolveAggregate
from olapdb.functions.aggregates.sparkbar import sparkbar
from olapdb.functions.aggregates.variance_tests import analysis_of_variance, one_sample_test

PLURALS = ("quantile", "quantiles")

FAMILIES: Mapping[str, ResolveAggregate] = MappingProxyType(
    {
        "anyHeavy": any_heavy,
        **dict.fromkeys(("groupBitmapAnd", "groupBitmapOr", "groupBitmapXor"), bitmap_operation),
        "groupArrayIntersect": array_intersection,
        **dict.fromkeys(("sequenceMatch", "sequenceCount"), sequence_match),
        **dict.fromkeys(("argAndMin", "argAndMax"), arg_and_extreme),
        "groupArrayInsertAt": insert_at,
        "groupArraySample": array_sample,
        "uniqUpTo": uniq_up_to,
        **dict.fromkeys(DEPENDENCES, dependence),
        "sparkbar": sparkbar,
        **dict.fromkeys(("studentTTest", "welchTTest", "meanZTest"), mean_test),
        **dict.fromkeys(("mannWhitneyUTest", "kolmogorovSmirnovTest"), rank_test),
        **dict.fromkeys(MATRICES, covariance_matrix),
        "exponentialMovingAverage": exponential_moving_average,
        "largestTriangleThreeBuckets": largest_triangles,
        **dict.fromkeys(("approx_top_k", "approx_top_sum"), approximate_top),
        **{f"{plural}{kind}": counted_quantile for plural in PLURALS for kind in KINDS},
        "groupNumericIndexedVector": numeric_indexed_vector,
        "histogram": histogram,
        "gini": gini,
        "categoricalInformationValue": information_value,
        "analysisOfVariance": analysis_of_variance,
        "studentTTestOneSample": one_sample_test,
        "boundingRatio": bounding_ratio,
        "deltaSumTimestamp": delta_sum_timestamp,
        "singleValueOrNull": single_value,
        "sumKahan": kahan_sum,
    }
)
