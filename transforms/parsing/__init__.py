"""Texts to sentences with constituents, by one of several parsers."""
