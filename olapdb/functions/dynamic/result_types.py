"""Types that functions have whatever the types of the values of a Dynamic; other functions give a Dynamic."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from olapdb import types

_NAMES: tuple[tuple[types.DataType, str], ...] = (
    (
        types.FLOAT64,
        "acos acosh areaCartesian areaSpherical arrayAUCPR arrayROCAUC asin asinh atan atan2 "
        "atanh cbrt cos cosh degrees erf erfc exp exp10 exp2 hypot lgamma log log10 log1p log2 "
        "max2 min2 parseISO8601Duration parseTimeDelta perimeterCartesian perimeterSpherical "
        "polygonAreaCartesian polygonAreaSpherical polygonPerimeterCartesian "
        "polygonPerimeterSpherical polygonsDistanceCartesian polygonsDistanceSpherical pow "
        "radians sigmoid simpleJSONExtractFloat sin sinh sqrt tan tanh tgamma ",
    ),
    (types.INT32, "ascii timezoneOffset "),
    (
        types.INT64,
        "age dateDiff simpleJSONExtractInt timeDiff toDayOfMonth toHour toISOWeek toMicrosecond "
        "toMillisecond toMinute toMonth toNanosecond toQuarter toSecond toUnixTimestamp64Micro "
        "toUnixTimestamp64Milli toUnixTimestamp64Nano toUnixTimestamp64Second toYear ",
    ),
    (types.INT8, "compareSubstrings "),
    (
        types.STRING,
        "HMAC IPv4NumToString IPv4NumToStringClassC IPv6NumToString JSON_QUERY JSON_VALUE "
        "MACNumToString UUIDNumToString aes_decrypt_mysql aes_encrypt_mysql "
        "appendTrailingCharIfAbsent arrayStringConcat bar base32Decode base32Encode base58Decode "
        "base58Encode base64Decode base64Encode base64URLDecode base64URLEncode basename bin "
        "bitmaskToList caseFoldUTF8 char concat concatAssumeInjective concatWithSeparator "
        "concatWithSeparatorAssumeInjective convertCharset cutFragment cutIPv6 cutQueryString "
        "cutQueryStringAndFragment cutToFirstSignificantSubdomain "
        "cutToFirstSignificantSubdomainRFC cutToFirstSignificantSubdomainWithWWW "
        "cutToFirstSignificantSubdomainWithWWWRFC cutURLParameter cutWWW dateName "
        "decodeHTMLComponent decodeURLComponent decodeURLFormComponent decodeXMLComponent decrypt "
        "domain domainRFC domainWithoutWWW domainWithoutWWWRFC encodeURLComponent "
        "encodeURLFormComponent encodeXMLComponent encrypt extract extractURLParameter firstLine "
        "firstSignificantSubdomain firstSignificantSubdomainRFC format formatReadableDecimalSize "
        "formatReadableQuantity formatReadableSize formatReadableTimeDelta fragment hex "
        "icebergTruncate initcap initcapUTF8 left leftPad leftPadUTF8 leftUTF8 lower lowerUTF8 "
        "monthName naturalSortKey netloc normalizeQuery normalizeQueryKeepNames normalizeUTF8NFC "
        "normalizeUTF8NFD normalizeUTF8NFKC normalizeUTF8NFKCCasefold normalizeUTF8NFKD overlay "
        "overlayUTF8 path pathFull protocol queryString queryStringAndFragment "
        "randomPrintableASCII randomString randomStringUTF8 regexpExtract regexpQuoteMeta "
        "removeDiacriticsUTF8 repeat replaceAll replaceOne replaceRegexpAll replaceRegexpOne "
        "reverseUTF8 right rightPad rightPadUTF8 rightUTF8 simpleJSONExtractRaw "
        "simpleJSONExtractString soundex space sqidEncode substring substringIndex "
        "substringIndexUTF8 substringUTF8 svg toDecimalString toJSONString toStringCutToZero "
        "toValidUTF8 topLevelDomain topLevelDomainRFC tryBase32Decode tryBase58Decode "
        "tryBase64Decode tryBase64URLDecode tryDecrypt unbin unhex upper upperUTF8 wkb wkt ",
    ),
    (types.UINT16, "toDayOfYear toISOYear toRelativeYearNum toYearNumSinceEpoch "),
    (
        types.UINT32,
        "arrayUniq toDaysSinceYearZero toMonthNumSinceEpoch toRelativeDayNum toRelativeHourNum "
        "toRelativeMinuteNum toRelativeMonthNum toRelativeQuarterNum toRelativeSecondNum "
        "toRelativeWeekNum toYYYYMM toYYYYMMDD toYearWeek ",
    ),
    (
        types.UINT64,
        "MACStringToNum MACStringToOUI arrayFlattenedLength countMatches "
        "countMatchesCaseInsensitive countSubstrings countSubstringsCaseInsensitive "
        "countSubstringsCaseInsensitiveUTF8 dateTime64ToSnowflakeID farmFingerprint64 halfMD5 "
        "hilbertEncode length lengthUTF8 locate mortonEncode position positionCaseInsensitive "
        "positionCaseInsensitiveUTF8 positionUTF8 regexpPosition simpleJSONExtractUInt stringToH3 "
        "toYYYYMMDDhhmmss xxh3 ",
    ),
    (
        types.UINT8,
        "JSON_EXISTS bitTestAll bitTestAny countDigits empty endsWith endsWithCaseInsensitive "
        "endsWithCaseInsensitiveUTF8 endsWithUTF8 equals greater greaterOrEquals hasAll hasAny "
        "hasSubstr hasToken hasTokenCaseInsensitive hasTokenCaseInsensitiveOrNull hasTokenOrNull "
        "ilike isDecimalOverflow isFinite isIPv6String isInfinite isNaN isValidUTF8 less "
        "lessOrEquals like match matchCaseInsensitive not notEmpty notEquals notILike notLike "
        "notMatch notMatchCaseInsensitive pointInEllipses pointInPolygon polygonsEqualsCartesian "
        "polygonsIntersectCartesian polygonsIntersectSpherical polygonsWithinCartesian "
        "polygonsWithinSpherical simpleJSONExtractBool simpleJSONHas startsWith "
        "startsWithCaseInsensitive startsWithCaseInsensitiveUTF8 startsWithUTF8 toDayOfWeek "
        "toDaysInMonth toWeek xor ",
    ),
)
RESULT_TYPES: Mapping[str, types.DataType] = MappingProxyType(
    {name: types.Nullable(kind) for kind, names in _NAMES for name in names.split()}
)
"""The type of each function's result: of functions of texts, of comparisons, of parts of times and the like."""
