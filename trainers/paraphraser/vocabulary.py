"""A tokenizer of word pieces that gives texts in lower case back, and embeddings for its pieces.

A text is parted at blanks only, and every piece but the first of a part begins with "##", punctuation too: "well-known"
is "well" "##-" "##known". So nothing is lost but capitals, accents and runs of blanks. The pieces are those of BERT's
uncased vocabulary that the phrases need, so that the word embeddings of an encoder with that vocabulary fit.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import WordPiece
from transformers import PreTrainedTokenizerFast

from transforms.parsing.phrasemill.encoding import read_vocabulary

F32 = npt.NDArray[np.float32]

PAD, UNKNOWN, SEPARATOR, END = "[PAD]", "[UNK]", "[CLS]", "[SEP]"
SPECIAL = (PAD, UNKNOWN, SEPARATOR, END)
_INNER = "##"
_LEAST = 2
"""How often a piece is in the phrases at least."""


def make_tokenizer(texts: Iterable[str], size: int) -> PreTrainedTokenizerFast:
    """The tokenizer with the special tokens, all ASCII characters, the pieces that are in the texts, the most frequent
    first, and if there is room those that BERT has first: at most `size` in all, more if the characters are more.
    """
    known = [each for each in read_vocabulary() if not (each.startswith("[") and len(each) > 1)]
    words = [each for each in known if each.isascii() and each.isalpha()]
    characters = list(string.ascii_lowercase + string.digits + string.punctuation)
    candidates = list(dict.fromkeys([*known, *characters, *(_INNER + each for each in [*characters, *words])]))
    counts: Counter[int] = Counter()
    whole = _tokenizer([*SPECIAL, *candidates])
    for encoded in whole.encode_batch_fast(list(texts), add_special_tokens=False):
        counts.update(encoded.ids)
    number = {piece: place for place, piece in enumerate([*SPECIAL, *candidates])}
    kept = list(dict.fromkeys([*SPECIAL, *characters, *(_INNER + each for each in characters)]))
    seen = sorted(
        (each for each in candidates if counts[number[each]] >= _LEAST), key=lambda each: -counts[number[each]]
    )
    known_ascii = [each for each in known if each.isascii()]
    kept = list(dict.fromkeys([*kept, *seen, *known_ascii]))[: max(size, len(kept))]
    return PreTrainedTokenizerFast(
        tokenizer_object=_tokenizer(kept),
        pad_token=PAD,
        unk_token=UNKNOWN,
        bos_token=SEPARATOR,
        eos_token=END,
        clean_up_tokenization_spaces=False,
        do_lower_case=True,
    )


def _tokenizer(pieces: Sequence[str]) -> Tokenizer:
    ids = {piece: place for place, piece in enumerate(pieces)}
    made = Tokenizer(WordPiece(ids, unk_token=UNKNOWN, max_input_chars_per_word=100))
    made.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=False, strip_accents=True, lowercase=True
    )
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.decoder = decoders.WordPiece(prefix=_INNER, cleanup=False)
    return made


def embeddings_of(encoder: str, tokenizer: PreTrainedTokenizerFast, *, deviation: float) -> F32:
    """[pieces, width] the word embeddings of an encoder, centred and scaled to a standard deviation.

    A piece that the encoder lacks has that of the same text at the beginning of a word, else zero.
    """
    from transformers import AutoModel, AutoTokenizer

    known: dict[str, int] = AutoTokenizer.from_pretrained(encoder).get_vocab()
    theirs: F32 = AutoModel.from_pretrained(encoder).get_input_embeddings().weight.detach().float().numpy()
    pieces = [str(tokenizer.convert_ids_to_tokens(number)) for number in range(len(tokenizer))]
    rows = np.array([known.get(each, known.get(each.removeprefix(_INNER), -1)) for each in pieces])
    found: F32 = np.where((rows >= 0)[:, None], theirs[rows], np.float32(np.nan))
    found -= np.nanmean(found, axis=0)
    return np.nan_to_num(found * (deviation / np.nanstd(found)))
