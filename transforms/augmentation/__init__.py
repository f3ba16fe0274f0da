"""Augmentations of phrases, in batches: each operation is a pure function of a phrase and a seed."""
