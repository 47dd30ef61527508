"""The settings of input and output formats."""

from __future__ import annotations

from olapdb.config.definition import SettingDefinition, SettingValue
from olapdb.config.input_formats import INPUT_SETTINGS

_TEXT: tuple[tuple[str, SettingValue, str], ...] = (
    ("bool_true_representation", "true", "How true is written in text formats."),
    ("bool_false_representation", "false", "How false is written in text formats."),
    ("format_tsv_null_representation", "\\N", "How NULL is written in TabSeparated."),
    ("format_csv_null_representation", "\\N", "How NULL is written in CSV."),
    ("format_csv_delimiter", ",", "The character between the values of a line of CSV."),
    ("format_csv_allow_single_quotes", False, "Values of CSV may be in single quotes too."),
    (
        "output_format_decimal_trailing_zeros",
        False,
        "Decimals are written with all digits of their scale.",
    ),
    (
        "output_format_trim_fixed_string",
        False,
        "A FixedString is written without the zero bytes at its end.",
    ),
    (
        "output_format_always_write_decimal_point_in_float_and_decimal",
        False,
        "Whole floats and decimals end with a point.",
    ),
    (
        "date_time_64_output_format_cut_trailing_zeros_align_to_groups_of_thousands",
        False,
        "A DateTime64 has 0, 3, 6 or 9 digits behind the point, as few as it needs.",
    ),
    (
        "output_format_csv_header_serialize_tuple_into_separate_columns",
        True,
        "The names of CSV are those of the elements of a Tuple.",
    ),
    (
        "output_format_bson_string_as_string",
        False,
        "BSONEachRow has texts as strings, not as binaries.",
    ),
    ("output_format_tsv_crlf_end_of_line", False, "Lines of TabSeparated end with CR LF."),
    ("output_format_csv_crlf_end_of_line", False, "Lines of CSV end with CR LF."),
    (
        "output_format_binary_write_json_as_string",
        False,
        "RowBinary has a JSON as its text when it is written; off: it is refused.",
    ),
    (
        "output_format_csv_serialize_tuple_into_separate_columns",
        True,
        "Each element of a Tuple is a column of CSV.",
    ),
    ("output_format_json_quote_64bit_integers", False, "JSON has Int64 and UInt64 as strings."),
    ("output_format_json_quote_64bit_floats", False, "JSON has Float64 as strings."),
    ("output_format_json_quote_decimals", False, "JSON has decimals as strings."),
    ("output_format_json_quote_denormals", False, "JSON has nan and inf as strings, not null."),
    ("output_format_json_escape_forward_slashes", True, "JSON has / in strings as \\/."),
    ("output_format_json_named_tuples_as_objects", True, "JSON has tuples with names as objects."),
    ("output_format_json_array_of_rows", False, "JSONEachRow is an array of its rows."),
    (
        "output_format_json_map_as_array_of_tuples",
        False,
        "JSON has maps as arrays of objects with keys and values.",
    ),
    (
        "output_format_json_pretty_print",
        True,
        "JSON has a line for each member of the containers in a value.",
    ),
    (
        "output_format_json_skip_null_value_in_named_tuples",
        False,
        "JSON leaves out elements of tuples with names that are NULL.",
    ),
    (
        "output_format_json_validate_utf8",
        False,
        "JSON has the replacement character for bytes that are no UTF-8.",
    ),
    (
        "output_format_markdown_escape_special_characters",
        False,
        "Markdown has a backslash before characters that mean something.",
    ),
    (
        "output_format_values_escape_quote_with_quote",
        False,
        "Values, SQLInsert and texts in arrays have a quote within a text twice.",
    ),
    (
        "output_format_pretty_fallback_to_vertical",
        True,
        "Pretty formats show a wide table of few rows as Vertical does.",
    ),
    (
        "output_format_pretty_multiline_fields",
        True,
        "Pretty formats show the lines of a value within its column.",
    ),
    (
        "output_format_pretty_named_tuples_as_json",
        True,
        "Pretty formats show tuples with names as JSON.",
    ),
    (
        "output_format_pretty_display_footer_column_names",
        True,
        "Pretty formats repeat the names below long tables.",
    ),
    (
        "output_format_pretty_max_value_width_apply_for_single_value",
        False,
        "Pretty formats cut also a value that is the only one of its result.",
    ),
    ("output_format_write_statistics", True, "JSON, JSONCompact and XML end with statistics."),
    ("output_format_pretty_row_numbers", True, "Pretty formats number their rows."),
    (
        "user_files_path",
        "",
        "Folders, separated as in PATH, whose files statements may read and write: INTO OUTFILE, "
        "FROM INFILE, file(). Only connect() sets it; empty: none.",
    ),
    (
        "engine_file_empty_if_not_exists",
        False,
        "file() of a file that does not exist has no rows; else it is an error.",
    ),
    (
        "engine_file_truncate_on_insert",
        False,
        "INSERT INTO FUNCTION file() replaces a file that exists.",
    ),
    (
        "engine_file_allow_create_multiple_files",
        False,
        "INSERT INTO FUNCTION file() writes name.1.ending beside a file that cannot be appended to.",
    ),
    ("format_regexp", "", "The regular expression that splits a line of Regexp into values."),
    ("format_regexp_skip_unmatched", False, "Regexp skips lines that do not match."),
    ("format_custom_field_delimiter", "\t", "What stands between the values of CustomSeparated."),
    ("format_custom_row_before_delimiter", "", "What stands before a row of CustomSeparated."),
    ("format_custom_row_after_delimiter", "\n", "What stands behind a row of CustomSeparated."),
    ("format_custom_row_between_delimiter", "", "What stands between rows of CustomSeparated."),
    ("format_custom_result_before_delimiter", "", "What CustomSeparated begins with."),
    ("format_custom_result_after_delimiter", "", "What CustomSeparated ends with."),
    (
        "format_json_object_each_row_column_for_object_name",
        "",
        "The column that JSONObjectEachRow has as the names of its objects; empty: none.",
    ),
    ("format_template_row_format", "", "A row of Template: a text with ${column:rule} in it."),
    (
        "format_template_resultset_format",
        "",
        "The result of Template: a text with ${data}, ${rows:rule}, ${totals} in it; '': the rows.",
    ),
    ("format_template_rows_between_delimiter", "\n", "What stands between rows of Template."),
    ("output_format_sql_insert_include_column_names", True, "SQLInsert names the columns."),
    ("output_format_sql_insert_quote_names", True, "SQLInsert writes names in backquotes."),
    ("output_format_sql_insert_use_replace", False, "SQLInsert writes REPLACE, not INSERT."),
    ("output_format_sql_insert_table_name", "table", "The table that SQLInsert inserts into."),
)

AT_CONNECT_ONLY = ("user_files_path",)
"""Settings that a statement cannot change: they say what statements may do."""

_COUNTS: tuple[tuple[str, int, str], ...] = (
    ("output_format_pretty_max_rows", 1000, "Rows that Pretty formats and Vertical show."),
    (
        "output_format_pretty_display_footer_column_names_min_rows",
        50,
        "Rows of a table from which on Pretty formats repeat the names below it.",
    ),
    (
        "output_format_pretty_fallback_to_vertical_max_rows_per_chunk",
        10,
        "Rows up to which a wide table is shown as Vertical.",
    ),
    (
        "output_format_pretty_fallback_to_vertical_min_columns",
        5,
        "Columns from which on a wide table is shown as Vertical.",
    ),
    (
        "output_format_pretty_fallback_to_vertical_min_table_width",
        250,
        "Width from which on a table is shown as Vertical.",
    ),
    (
        "output_format_pretty_max_column_pad_width",
        250,
        "Width to which Pretty formats fill up the values of a column.",
    ),
    ("output_format_pretty_max_value_width", 10_000, "Width to which Pretty formats cut a value."),
    (
        "output_format_pretty_single_large_number_tip_threshold",
        1_000_000,
        "Numbers above this are followed by their reading in Pretty formats; 0: none.",
    ),
    (
        "output_format_pretty_max_column_name_width_cut_to",
        24,
        "Width to which Pretty formats and Vertical cut the name of an expression; 0: none is cut.",
    ),
    (
        "output_format_pretty_max_column_name_width_min_chars_to_cut",
        4,
        "A name that is wider by no more than this is not cut.",
    ),
    (
        "output_format_float_precision",
        0,
        "Digits of floats behind the point, at most; 0: as many as they need.",
    ),
    (
        "output_format_avro_sync_interval",
        16_384,
        "Bytes of a block of Avro, about, before compression.",
    ),
    ("output_format_sql_insert_max_batch_size", 65_409, "Rows of a statement of SQLInsert."),
    ("output_format_parquet_row_group_size", 1_000_000, "Rows of a row group of Parquet."),
    (
        "input_format_allow_errors_num",
        0,
        "Rows with values that their columns cannot hold which an INSERT leaves out.",
    ),
    (
        "input_format_msgpack_number_of_columns",
        0,
        "The columns of MsgPack data without a structure.",
    ),
    ("input_format_csv_skip_first_lines", 0, "Lines that are skipped at the start of CSV."),
    (
        "input_format_tsv_skip_first_lines",
        0,
        "Lines that are skipped at the start of TabSeparated.",
    ),
    (
        "input_format_max_rows_to_read_for_schema_inference",
        25_000,
        "Rows that are read to find the columns of text without names or types.",
    ),
)

_CHOICES: tuple[tuple[str, SettingValue, tuple[SettingValue, ...], str], ...] = (
    (
        "format_custom_escaping_rule",
        "Escaped",
        ("Escaped", "Quoted", "CSV", "JSON", "XML", "Raw"),
        "How CustomSeparated writes values: as TabSeparated, Values, CSV, JSON, XML or TSVRaw.",
    ),
    (
        "format_regexp_escaping_rule",
        "Raw",
        ("Raw", "Escaped", "Quoted", "CSV", "JSON"),
        "How values of Regexp are written: as TSVRaw, TabSeparated, Values, CSV or JSON.",
    ),
    (
        "output_format_msgpack_uuid_representation",
        "ext",
        ("ext", "bin", "str"),
        "How MsgPack has UUIDs: as an extension, as 16 bytes, or as text.",
    ),
    ("output_format_pretty_color", "auto", ("auto", "0"), "Pretty formats write no colors."),
    (
        "output_format_pretty_grid_charset",
        "UTF-8",
        ("UTF-8", "ASCII"),
        "Pretty formats draw their lines by characters of Unicode, or of ASCII.",
    ),
    (
        "output_format_avro_codec",
        "",
        ("", "null", "deflate", "snappy", "zstd"),
        "The compression of Avro; '' is snappy.",
    ),
    (
        "interval_output_format",
        "numeric",
        ("numeric", "kusto"),
        "Formats write intervals as numbers, or as spans of time: 1.02:03:04.",
    ),
    (
        "date_time_output_format",
        "simple",
        ("simple", "iso", "unix_timestamp"),
        "Formats write times as YYYY-MM-DD hh:mm:ss, YYYY-MM-DDThh:mm:ssZ, or seconds since 1970.",
    ),
    (
        "output_format_parquet_compression_method",
        "zstd",
        ("none", "snappy", "zstd", "gzip", "lz4", "brotli"),
        "The compression of Parquet.",
    ),
    (
        "output_format_arrow_compression_method",
        "lz4_frame",
        ("none", "lz4_frame", "zstd"),
        "The compression of Arrow and ArrowStream.",
    ),
    (
        "schema_inference_make_columns_nullable",
        "3",
        ("3", "1", "0"),
        "Columns that are found in data are Nullable; 0: none is, with the default for NULL.",
    ),
    (
        "input_format_column_name_matching_mode",
        "auto",
        ("auto", "match_case", "ignore_case"),
        "Names in data mean the columns that are written alike; auto: else those that differ in case.",
    ),
)

FORMAT_SETTINGS: tuple[SettingDefinition, ...] = (
    *(SettingDefinition(name, default, text) for name, default, text in (*_TEXT, *INPUT_SETTINGS)),
    *(SettingDefinition(name, default, text, minimum=0) for name, default, text in _COUNTS),
    *(
        SettingDefinition(name, default, text, only=choices)
        for name, default, choices, text in _CHOICES
    ),
)
"""The settings of formats; what is not implemented takes its default only."""
