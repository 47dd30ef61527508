"""The catalog: tables, views, parts and the ledger of views, as of each commit. Sees no SQL text."""
