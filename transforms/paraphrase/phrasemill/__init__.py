"""Our own paraphraser: a small causal language model of GPT-2's architecture over word pieces."""
