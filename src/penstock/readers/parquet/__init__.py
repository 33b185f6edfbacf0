"""Parquet: blocks are row groups.

`layout` reads footers, `plan` decides before the start how each row group is decoded, `decode` does it and holds
what comes against the plan. `pages` and `page_headers` tell what a column holds while it is decoded, `texts` and
`mixed_texts` write out texts that stand in dictionaries.
"""
