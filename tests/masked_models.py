"""A masked language model that has learnt nothing, for tests of what is around it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def make_masked_lm(folder: Path, words: Sequence[str]) -> str:
    """Save a tiny BERT whose vocabulary has some words, and letters; returns its folder."""
    import torch
    import transformers

    letters = "abcdefghijklmnopqrstuvwxyz"
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *".,'0123456789"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join([*marks, *words, *letters, *("##" + each for each in letters)]))
    tokenizer = transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt"))
    tokenizer.save_pretrained(folder)
    torch.manual_seed(1)
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=len(tokenizer), **shape)
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    return str(folder)


def make_luke(folder: Path) -> str:
    """Save a tiny LUKE whose sub-tokens are bytes; returns its folder."""
    import torch
    import transformers
    from tokenizers.pre_tokenizers import ByteLevel

    marks = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    vocabulary = {each: n for n, each in enumerate([*marks, *sorted(ByteLevel.alphabet())])}
    tokenizer = transformers.LukeTokenizer(vocab=vocabulary, merges=[])
    tokenizer.save_pretrained(folder)
    torch.manual_seed(1)
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.LukeConfig(vocab_size=len(tokenizer), entity_vocab_size=4, entity_emb_size=8, **shape)
    transformers.LukeModel(config).save_pretrained(folder)
    return str(folder)
