"""Paraphrases of phrases: generators, the words that they may not use, and which of their candidates are taken."""
