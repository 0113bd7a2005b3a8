"""HPO-B: the benchmark's files, read as streams into tables of curated records."""
