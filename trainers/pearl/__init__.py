"""PEARL: an encoder of phrases learned from their augmentations, hard negatives and types (Chen et al. 2024)."""
