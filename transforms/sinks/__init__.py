"""What is written beside a dataset's shards."""
