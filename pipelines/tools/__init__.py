"""Tools that show a run or a dataset, for the commands of the same names."""
