"""Scalar functions of ClickHouse that olapdb lacks: they are refused by name, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_AI = "it asks a language model over the network"
_REASONS = {
    _AI: """aiClassify aiEmbed aiExtract aiFilter aiGenerate aiRedact aiSimilarity aiTranslate
        AIClassify AIEmbed AIExtract AIFilter AIGenerate AIRedact AISimilarity AITranslate""",
    "it needs models or files beside ClickHouse's server": """naiveBayesClassifier naiveBayesClassifierWithProb naiveBayesClassifierWithAllProbs""",
    "polygons are not filled with cells": "h3PolygonToCells h3PolygonToCellsWithContainment",
    "this function of shapes is not there yet": """MVTEncodeGeom ST_AsMVTGeom""",
    "there is no type QBit": """cosineDistanceTransposed cosineDistanceTransposedQuantized
        dotProductTransposed dotProductTransposedQuantized L2DistanceTransposed
        L2DistanceTransposedQuantized distanceCosineTransposed distanceL2Transposed
        scalarProductTransposed randomHadamardTransform""",
    "there is no engine TimeSeries": """timeSeriesCopyTag timeSeriesCopyTags timeSeriesExtractTag
        timeSeriesGroupToSamplingKey timeSeriesGroupToTags timeSeriesIdToGroup timeSeriesIdToTags
        timeSeriesIdToTagsGroup timeSeriesJoinTags timeSeriesRemoveAllTagsExcept timeSeriesRemoveTag
        timeSeriesRemoveTags timeSeriesReplaceTag timeSeriesStoreTags timeSeriesTagsGroupToTags
        timeSeriesTagsToGroup timeSeriesThrowDuplicateSeriesIf""",
    "there is no dialect KQL": """kqlBin kqlBinAt kqlDateTimeBinAt kqlDivide kqlMultiply
        kqlParameterCast kqlRangeCount kqlToTimespan""",
    "it shows the inside of ClickHouse's server": """addressToLine addressToLineWithInlines
        addressToSymbol blockSerializedSize demangle filesystemAvailable filesystemCapacity
        filesystemUnreserved getClientHTTPHeader getMaxTableNameLengthForDatabase
        getServerSetting showCertificate validateNestedArraySizes chdb""",
    "its answer is ClickHouse's own form of a query": """formatQueryFromJSON fuzzQuery highlightQuery
        obfuscateQuery obfuscateQueryWithSeed parseQueryToJSON""",
    "a file is read by the table function file()": "file",
    "tables are not made from descriptions of other systems": "generateRandomStructure",
    "it is a part of ClickHouse's plans": """__actionName __applyFilter __bitBoolMaskAnd
        __bitBoolMaskOr __bitSwapLastTwo __bitWrapperFunc __getScalar __groupingForCube
        __groupingForGroupingSets __groupingForRollup __groupingOrdinary __patchPartitionID
        __scalarSubqueryResult""",
}

_UNKNOWN_REASONS = {
    "there are no cells of S2": """geoToS2 s2CapContains s2CapUnion s2CellsIntersect s2GetNeighbors
        s2RectAdd s2RectContains s2RectIntersection s2RectUnion s2ToGeo""",
    "it needs a library of models": "catboostEvaluate",
}


def _by_name(reasons: Mapping[str, str]) -> Mapping[str, str]:
    """Return the reason for each name, from names (separated by blanks) by reason."""
    return MappingProxyType({name: why for why, names in reasons.items() for name in names.split()})


UNKNOWN: Mapping[str, str] = _by_name(_UNKNOWN_REASONS)
"""The names of functions that some builds of ClickHouse have, among them not the reference, and why they are not
there: they are unknown, as in that build."""

REFUSED: Mapping[str, str] = _by_name(_REASONS)
"""The names of the functions, and why each is not there."""
