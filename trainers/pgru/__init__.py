"""Pairwise-GRU (Zhou, Huang and Ji 2017): phrases as the last state of a GRU over the vectors of their words."""
