-- Hashes of any values. Each statement is run on olapdb and on ClickHouse; names, types and values agree.
SELECT number, cityHash64(substring(repeat('abcdefghij-0123456789_', 20), 1, number)) AS c, sipHash64(substring(repeat('abcdefghij-0123456789_', 20), 1, number)) AS s, xxHash64(substring(repeat('abcdefghij-0123456789_', 20), 1, number)) AS x FROM numbers(300) ORDER BY number;
SELECT number, cityHash64(reverse(repeat(char(number % 251), number))) AS c, sipHash64(repeat(char(number % 251), number)) AS s, xxHash64(repeat(char(number % 251), number)) AS x FROM numbers(200) ORDER BY number;
SELECT cityHash64(toInt8(-1)), sipHash64(toInt8(-1)), xxHash64(toInt8(-1)), cityHash64(toUInt8(255)), cityHash64(toInt64(-1)), sipHash64(toInt64(-1)), xxHash64(toUInt32(7));
SELECT cityHash64(1.5), cityHash64(toFloat32(1.5)), sipHash64(1.5), xxHash64(toFloat32(-0.)), sipHash64(toInt16(-300)), cityHash64(toUInt16(300));
SELECT cityHash64(1, 2), sipHash64(1, 2), xxHash64(1, 2), cityHash64('a', 1, 'b'), sipHash64('a', 1, 'b'), xxHash64('a', 1, 'b');
SELECT cityHash64((1, 'x')), sipHash64((1, 'x'), 3), cityHash64((1, (2, 'y'))), xxHash64((1, 2));
SELECT cityHash64(toDate('2024-01-01')), cityHash64(toDateTime('2024-01-01 00:00:00')), sipHash64(toDate('2024-01-01')), xxHash64(toDateTime('2024-01-01 00:00:00')), cityHash64(toDate32('1950-01-01')), sipHash64(toDate32('1950-01-01'));
SELECT cityHash64(toFixedString('ab', 4)), sipHash64(toFixedString('ab', 4)), cityHash64(true), sipHash64(false), cityHash64(''), sipHash64(''), xxHash64('');
SELECT cityHash64(toNullable(1)), cityHash64(NULL), cityHash64(1, NULL), cityHash64(toNullable('x'));
SELECT number, cityHash64(if(number % 2, NULL, toString(number))) AS c FROM numbers(4) ORDER BY number;
SELECT sum(cityHash64(number, toString(number)) % 1000), sum(sipHash64(number) % 1000), sum(xxHash64(toString(number)) % 1000) FROM numbers(10000);
SELECT cityHash64() = cityHash64(), sipHash64(), xxHash64();
