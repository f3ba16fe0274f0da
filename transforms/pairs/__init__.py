"""Pairs of phrases: files of them, which are kept, and the sets that the papers make of them."""
