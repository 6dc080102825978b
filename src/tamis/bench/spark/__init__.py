"""The benchmark of the pipeline on Spark: Parquet to Parquet, against a join, and as a stream."""
