"""The methods that dbt and the macros call, by subject; `OlapdbAdapter` has all of them."""
