"""Sentences to named entities, by one of several recognisers."""
