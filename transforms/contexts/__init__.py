"""Masked contexts of phrases."""
