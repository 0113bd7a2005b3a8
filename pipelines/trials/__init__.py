"""Anyone's own trials, from JSON lines, CSV or Parquet and a space file that says what the columns mean."""
