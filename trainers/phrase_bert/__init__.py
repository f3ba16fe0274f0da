"""Phrase-BERT (Wang, Thompson and Iyyer 2021)."""
