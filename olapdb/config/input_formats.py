"""The settings that say how data are read: which columns they have, of which types, and what is lacking."""

from __future__ import annotations

from olapdb.config.definition import SettingValue

_INPUT: tuple[tuple[str, SettingValue, str], ...] = (
    (
        "input_format_skip_unknown_fields",
        True,
        "Columns of the data that the table lacks are skipped; off: they are an error.",
    ),
    *(
        (
            f"input_format_{name.lower()}_case_insensitive_column_matching",
            False,
            f"Columns of {name} mean those of the table that differ in case alone.",
        )
        for name in ("Parquet", "ORC", "Arrow")
    ),
    (
        "input_format_import_nested_json",
        False,
        "An object n of JSON has the columns n.a and n.b of a Nested column n as its members.",
    ),
    (
        "input_format_with_names_use_header",
        True,
        "The names in the first line say which columns follow; off: columns are taken by position.",
    ),
    (
        "input_format_with_types_use_header",
        True,
        "The types in the second line must be those of the table's columns.",
    ),
    (
        "input_format_csv_empty_as_default",
        True,
        "An empty value of CSV that is not quoted is the default of its column.",
    ),
    (
        "input_format_tsv_empty_as_default",
        False,
        "An empty value of TabSeparated is the default of its column.",
    ),
    (
        "input_format_avro_allow_missing_fields",
        False,
        "Columns that the fields of Avro data lack have their default; else they are an error.",
    ),
    (
        "input_format_defaults_for_omitted_fields",
        True,
        "Columns that the data lack have their DEFAULT, else the default of their type.",
    ),
    (
        "input_format_force_null_for_omitted_fields",
        False,
        "Columns that the data lack are NULL; those that cannot be are an error.",
    ),
    (
        "input_format_allow_errors_ratio",
        0.0,
        "As input_format_allow_errors_num, as a fraction of the rows so far.",
    ),
    (
        "input_format_csv_use_default_on_bad_values",
        False,
        "Values of CSV that their column cannot hold are its type's default.",
    ),
    (
        "input_format_csv_enum_as_number",
        False,
        "Enums of CSV are written as the numbers of their elements.",
    ),
    (
        "input_format_tsv_enum_as_number",
        False,
        "Enums of TabSeparated are written as the numbers of their elements.",
    ),
    (
        "input_format_ipv4_default_on_conversion_error",
        False,
        "Texts that are no address of IPv4 are 0.0.0.0, not an error.",
    ),
    (
        "input_format_ipv6_default_on_conversion_error",
        False,
        "Texts that are no address of IPv6 are ::, not an error.",
    ),
    (
        "input_format_json_read_numbers_as_strings",
        True,
        "Numbers of JSON are texts of String columns; else an error.",
    ),
    (
        "input_format_json_read_bools_as_strings",
        True,
        "true and false of JSON are texts of String columns; else an error.",
    ),
    (
        "input_format_json_read_bools_as_numbers",
        True,
        "A column of JSON with numbers, true and false has numbers; else its type is an error.",
    ),
    (
        "input_format_json_infer_incomplete_types_as_strings",
        True,
        "A column of JSON with null or empty arrays alone has texts; else its type is an error.",
    ),
    (
        "input_format_json_read_objects_as_strings",
        True,
        "Objects of JSON are texts of String columns; else an error.",
    ),
    (
        "input_format_json_read_arrays_as_strings",
        True,
        "Arrays of JSON are texts of String columns; else an error.",
    ),
    (
        "input_format_json_ignore_unknown_keys_in_named_tuple",
        True,
        "Members of an object of JSON that a tuple lacks are skipped; else an error.",
    ),
    (
        "input_format_json_defaults_for_missing_elements_in_named_tuple",
        True,
        "Elements of a tuple that an object of JSON lacks have their default; else they are an error.",
    ),
    (
        "input_format_csv_allow_whitespace_or_tab_as_delimiter",
        False,
        "A blank or a tab may be the delimiter of CSV; none around values is skipped then.",
    ),
    (
        "input_format_binary_read_json_as_string",
        False,
        "RowBinary has a JSON as its text when it is read; off: it is refused.",
    ),
    (
        "schema_inference_hints",
        "",
        "Types of columns that are found in data without a structure: 'a UInt8, b String'.",
    ),
)

_SHAPES = (
    *(
        (
            f"input_format_{name}_allow_variable_number_of_columns",
            False,
            f"Rows of {title} may have more values, which are skipped, or fewer: these are defaults.",
        )
        for name, title in (
            ("csv", "CSV"),
            ("tsv", "TabSeparated"),
            ("json_compact", "JSONCompactEachRow"),
        )
    ),
    *(
        (
            f"input_format_{name}_skip_trailing_empty_lines",
            False,
            f"Empty lines at the end of {title} are no rows.",
        )
        for name, title in (("csv", "CSV"), ("tsv", "TabSeparated"))
    ),
    (
        "input_format_csv_deserialize_separate_columns_into_tuple",
        True,
        "Each element of a Tuple is a value of a row of CSV; off: the tuple is one value.",
    ),
    (
        "input_format_tsv_crlf_end_of_line",
        False,
        "Lines of TabSeparated may end with CR LF; off: the first line must not.",
    ),
    (
        "input_format_csv_try_infer_numbers_from_strings",
        False,
        "Values of CSV in quotes may be numbers.",
    ),
    (
        "input_format_tsv_use_best_effort_in_schema_inference",
        True,
        "Values of TabSeparated have the types that are found, not String.",
    ),
    (
        "input_format_json_empty_as_default",
        False,
        "An empty string of JSON is the default of a column that is no text.",
    ),
)

_INFERRED: tuple[tuple[str, SettingValue, str], ...] = (
    ("input_format_try_infer_integers", True, "Whole numbers in texts are Int64, not Float64."),
    ("input_format_try_infer_dates", True, "Texts of days are dates."),
    ("input_format_try_infer_datetimes", True, "Texts of days and times are times."),
    (
        "input_format_try_infer_datetimes_only_datetime64",
        False,
        "Texts of times are DateTime64, never DateTime.",
    ),
    ("input_format_try_infer_exponent_floats", False, "Texts such as 1e5 are numbers."),
    ("input_format_json_try_infer_numbers_from_strings", False, "Strings of JSON may be numbers."),
    (
        "input_format_json_try_infer_named_tuples_from_objects",
        True,
        "Objects of JSON are tuples with names, not texts.",
    ),
    (
        "input_format_json_infer_array_of_dynamic_from_array_of_different_types",
        True,
        "Arrays of JSON whose elements have no type in common are no tuples.",
    ),
    (
        "input_format_csv_use_best_effort_in_schema_inference",
        True,
        "Values of CSV have the types that are found, not String.",
    ),
    (
        "column_names_for_schema_inference",
        "",
        "Names, with commas between, of the columns of data that name none.",
    ),
)

_DETECTED = (
    (
        "input_format_custom_detect_header",
        True,
        "CustomSeparated may begin with names, and types, of columns.",
    ),
    (
        "input_format_csv_trim_whitespaces",
        True,
        "Blanks around values of CSV without quotes do not belong to them.",
    ),
    ("input_format_csv_detect_header", True, "CSV may begin with names, and types, of columns."),
    (
        "input_format_tsv_detect_header",
        True,
        "TabSeparated may begin with names, and types, of columns.",
    ),
)

INPUT_SETTINGS: tuple[tuple[str, SettingValue, str], ...] = (
    *_INPUT,
    *_SHAPES,
    *_INFERRED,
    *_DETECTED,
)
"""Name, default and meaning of each."""
