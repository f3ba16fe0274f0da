"""Negatives: phrases near to a phrase by their letters."""
