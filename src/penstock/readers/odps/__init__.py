"""Tables of ODPS (MaxCompute), read in ranges of rows through pyodps; the extra `odps` installs it."""
