"""Text files: records that end with a line break, cut into blocks that have a byte offset and a row number."""
