"""What looks at a run or a dataset: the work of the commands of the same names."""
