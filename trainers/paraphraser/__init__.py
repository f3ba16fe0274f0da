"""The training of the paraphraser: a causal language model on pairs of phrases."""
