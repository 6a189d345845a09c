"""Records of many hosts and nights, in Parquet, asked with DuckDB."""
