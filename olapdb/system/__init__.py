"""The tables of the databases system and information_schema."""
