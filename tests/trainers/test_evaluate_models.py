"""The models that the evaluation measures: which one a name stands for, baselines, word vectors, spans in sentences."""

from __future__ import annotations

import gzip
import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from schemas.errors import UserError
from schemas.options import BadValue
from trainers.evaluation.model import Passage
from trainers.evaluation.models.options import ModelOptions, layers_of
from trainers.evaluation.models.registry import find_model
from transforms.encoders.spans import masked, placed, window

# ---- Names and options


@pytest.mark.parametrize(
    ("text", "layers"), [("0", (0,)), ("0-4", (0, 1, 2, 3, 4)), ("12, 1", (1, 12)), ("0-1,1-2", (0, 1, 2))]
)
def test_layers(text, layers):
    assert layers_of(text) == layers


@pytest.mark.parametrize("text", ["", "-1", "4-0", "1;2", "first"])
def test_no_layers(text):
    with pytest.raises(BadValue, match="must be numbers of layers"):
        layers_of(text)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("nowhere", "^MODEL: no model 'nowhere': .* other models are a file of word vectors, .* random, random-words"),
        ("nowhere.vec", "^MODEL nowhere.vec: no such file"),
    ],
)
def test_no_such_model(name, error):
    with pytest.raises(UserError, match=error):
        find_model(name)


# ---- Baselines


@pytest.mark.parametrize("name", ["random", "random-words", "characters"])
def test_a_baseline_depends_on_the_text_alone(name):
    found = find_model(name)
    assert found.identity == {"baseline": name, "version": 1}
    one, other = found.load(), found.load()
    texts = ["a big whale", "the Whale", "", "a big whale"]
    vectors = one.encode(texts)
    assert vectors.dtype == np.float32
    assert vectors.shape == (4, one.dimension)
    assert np.array_equal(vectors[0], vectors[3])
    assert np.array_equal(other.encode(texts[::-1]), vectors[::-1])
    spans = one.encode_spans([Passage(["a", "big", "whale", "!"], 0, 3)])
    assert np.array_equal(spans[0], vectors[0])
    assert (one.contextual, one.remarks()) == (False, [])


def test_what_baselines_hold_for_near():
    def cosine(name: str, a: str, b: str) -> float:
        one, other = find_model(name).load().encode([a, b]).astype(float)
        return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))

    assert abs(cosine("random", "big whale", "big whales")) < 0.25  # 256 dimensions: a spread of 1/16
    assert cosine("random-words", "big whale", "Whale big") > 0.999
    assert abs(cosine("random-words", "whale", "whales")) < 0.25
    assert cosine("characters", "whale", "whales") > 0.6


# ---- Word vectors

WORDS = {"big": (1.0, 0.0, 2.0), "whale": (0.0, 3.0, 0.0), "Rome": (5.0, 0.0, 0.0), "new york": (0.0, 0.0, 4.0)}
PLAIN = {word: vector for word, vector in WORDS.items() if " " not in word}


def _lines(words: dict[str, tuple[float, ...]]) -> bytes:
    return "".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in words.items()).encode()


def _write_numpy(folder: Path) -> Path:
    (folder / "words.txt").write_text("".join(f"{word}\n" for word in WORDS))
    np.save(folder / "words.npy", np.array([*WORDS.values()], np.float32))
    return folder / "words.npy"


def _write_gensim(folder: Path) -> Path:
    from gensim.models import KeyedVectors

    vectors = KeyedVectors(3)
    vectors.add_vectors([*WORDS], np.array([*WORDS.values()], np.float32))
    vectors.save(str(folder / "words.kv"))
    return folder / "words.kv"


def _write_spacy(folder: Path) -> Path:
    """Whale and whales share a row, as rare words do."""
    import spacy
    from spacy.vectors import Vectors

    pipeline = spacy.blank("en")
    strings = [pipeline.vocab.strings.add(word) for word in [*WORDS, "whales"]]
    table = Vectors(data=np.array([*WORDS.values()], np.float32), keys=strings[:-1])
    table.add(strings[-1], row=1)
    pipeline.vocab.vectors = table
    pipeline.to_disk(folder / "pipeline")
    return folder / "pipeline"


def _file(name: str, content: bytes):
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


PACKED = b"3 3\n" + b"".join(word.encode() + b" " + struct.pack("<3f", *vector) for word, vector in PLAIN.items())
SPACED = b"3 3\n" + b"".join(
    word.encode() + b" " + struct.pack("<3f", *vector) + b"\n" for word, vector in PLAIN.items()
)


@pytest.mark.parametrize(
    "write",
    [
        _file("glove.txt", _lines(WORDS)),
        _file("word2vec.txt", b"4 3\n" + _lines(WORDS)),
        _file("fasttext.vec.gz", gzip.compress(b"4 3\n" + _lines(WORDS))),
        _file("spaced.bin", SPACED),
        _file("packed.bin.gz", gzip.compress(PACKED)),
        _write_numpy,
        pytest.param(_write_gensim, marks=pytest.mark.heavy),
        _write_spacy,
    ],
)
def test_a_phrase_is_the_mean_of_its_known_words(tmp_path, write):
    model = find_model(str(write(tmp_path))).load()
    texts = ["big", "big whale", "Big unknown WHALE", "big-whale,", "Rome", "rome", "", "unknown"]
    both = (0.5, 1.5, 1.0)
    wanted = [WORDS["big"], both, both, both, WORDS["Rome"], (0, 0, 0), (0, 0, 0), (0, 0, 0)]
    assert np.array_equal(model.encode(texts), np.array(wanted, np.float32))
    # big, whale, Big, unknown, WHALE, "big-whale,", Rome, rome
    assert model.remarks() == ["2 of 8 words unknown (25.0%), 3 of 8 texts without a known word"]
    assert model.remarks() == []
    spans = [Passage(["a", "whale", ",", "big", "whale"], start, end) for start, end in ((3, 5), (1, 2))]
    assert np.array_equal(model.encode_spans(spans), np.array([both, WORDS["whale"]], np.float32))


def test_glove_has_words_with_blanks_and_spacy_words_that_share_a_row(tmp_path):
    from transforms.word_vectors import read_word_vectors

    path = _file("glove.txt", _lines(WORDS))(tmp_path)
    assert [*read_word_vectors(path).rows] == [*WORDS]
    assert [*read_word_vectors(path, most=2).rows] == ["big", "whale"]
    rows, matrix = read_word_vectors(_write_spacy(tmp_path))
    assert rows["whale"] == rows["whales"]
    assert matrix.shape == (4, 3)


def test_the_identity_of_word_vectors_covers_what_is_read(tmp_path):
    def identity(options: ModelOptions | None = None) -> object:
        from transforms.word_vectors import sha256_of_vectors

        sha256_of_vectors.cache_clear()
        return find_model(str(tmp_path / "words.npy"), options).identity

    _write_numpy(tmp_path)
    first = identity()
    assert identity(ModelOptions(prefix="of encoders only")) == first
    assert identity(ModelOptions(words=2)) != first
    (tmp_path / "words.txt").write_text("small\nwhale\nRome\nnew york\n")
    assert identity() != first


@pytest.mark.parametrize(
    ("write", "error"),
    [
        (_file("bad.txt", b"big 1 2\nwhale 1\n"), "bad.txt, line 2: has 1 numbers, not 2"),
        (_file("bad.txt", b"big 1 2\nwhale 1 x\n"), "bad.txt, line 2: is no word with numbers"),
        (_file("empty.txt", b""), "empty.txt: has no vectors of words"),
        (_file("cut.bin", PACKED[:-1]), "cut.bin: ends inside a vector"),
        (_file("facebook.bin", b"\xba\x16\x4f\x2f model"), "facebook.bin: is no binary file of word2vec; .* the .vec"),
        (_file("cut.vec.gz", gzip.compress(_lines(WORDS))[:-9]), "cut.vec.gz: cannot be read"),
        (_file("words.npy", b"?"), "words.npy: has no words.txt beside it"),
        pytest.param(_file("words.kv", b"?"), "words.kv: cannot be read", marks=pytest.mark.heavy),
    ],
)
def test_malformed_word_vectors(tmp_path, write, error):
    with pytest.raises(UserError, match=f"^MODEL .*{error}"):
        find_model(str(write(tmp_path))).load()


def test_the_words_of_a_numpy_pair_are_as_many_as_its_rows(tmp_path):
    _write_numpy(tmp_path)
    (tmp_path / "words.txt").write_text("big\nwhale\n")
    with pytest.raises(UserError, match=r"words.npy: has the shape \(4, 3\) for the 2 words of words.txt"):
        find_model(str(tmp_path / "words.npy")).load()


# ---- Spans in sentences: the released code of UCTopic looks a mention up in the text, and finds another one


@pytest.mark.parametrize(
    ("tokens", "span", "prefix", "text", "chars"),
    [
        (["US", "and", "US"], (2, 3), "", "US and US", (7, 9)),  # find: 0
        (["bus", "us"], (1, 2), "", "bus us", (4, 6)),  # find: 1, inside of a word
        (["New", "York", "(", "NY", ")"], (3, 4), "", "New York ( NY )", (11, 13)),
        (["a", "cat"], (0, 2), "query: ", "query: a cat", (7, 12)),
        (["e", "query"], (1, 2), "query: ", "query: e query", (9, 14)),  # find: 0, in the prefix
    ],
)
def test_where_a_span_is(tokens, span, prefix, text, chars):
    found = placed(Passage(tokens, *span), prefix=prefix)
    assert (found.text, found.start_sentence, (found.start_char, found.end_char)) == (text, len(prefix), chars)


@pytest.mark.parametrize(("corpus", "wrong"), [("conll2003", 0.015), ("bc5cdr", 0.05)])
def test_real_spans(test_data, corpus, wrong):
    """Each is where it is annotated; looked up in the text, so many are found in another place."""
    found = elsewhere = 0
    for line in (test_data / f"eval/{corpus}/dev.json").read_text().splitlines():
        row = json.loads(line)
        (tokens,), (spans,) = row["sentences"], row["ner"]
        for first, last, _ in spans:
            place = placed(Passage(tokens, first, last + 1))
            mention = " ".join(tokens[first : last + 1])
            assert place.text[place.start_char : place.end_char] == mention
            assert len(place.text[: place.start_char].split()) == first
            found += 1
            elsewhere += place.text.find(mention) != place.start_char
    assert elsewhere / found == pytest.approx(wrong, abs=0.01)


@pytest.mark.parametrize("span", [(0, 0), (2, 1), (1, 3), (-1, 1)])
def test_a_span_that_is_none(span):
    with pytest.raises(ValueError, match="in a sentence of 2"):
        placed(Passage(["a", "b"], *span))


@pytest.mark.parametrize(("masks", "tokens", "end"), [(1, ["a", "M", "d"], 2), (0, ["a", "M", "M", "d"], 3)])
def test_masks(masks, tokens, end):
    assert masked(Passage(["a", "b", "c", "d"], 1, 3), "M", masks) == Passage(tokens, 1, end)


@examples(40)
@given(
    st.lists(st.text("abİ(", min_size=1, max_size=4), min_size=1, max_size=12),
    st.data(),
    st.sampled_from(["", "query: "]),
    st.integers(12, 40),
)
def test_a_window_has_its_span_and_no_other_sub_tokens(tokens, data, prefix, most):
    """With a tokenizer whose sub-tokens are the characters, and a special one at each end."""
    start = data.draw(st.integers(0, len(tokens) - 1))
    end = data.draw(st.integers(start + 1, len(tokens)))
    place = placed(Passage(tokens, start, end), prefix=prefix)
    characters = [at for at, each in enumerate(place.text) if each != " "]
    offsets = [(0, 0), *((at, at + 1) for at in characters), (0, 0)]
    kept, span = window(offsets, place, most)
    assert len(kept) == min(most, len(offsets))
    assert kept == sorted({*kept})
    assert [kept[0], kept[-1]] == [0, len(offsets) - 1]
    assert [place.text[offsets[each][0]] for each in kept[1 : len("query:") + 1]] == [*"query:"] or not prefix
    mention = "".join(tokens[start:end])
    found = "".join(place.text[offsets[kept[each]][0]] for each in span)
    room = most - 2 - len(prefix.strip())
    assert found == (mention if len(offsets) <= most else mention[:room])


# ---- Transformers


# A tiny random BERT, against a plain and slow way.

PIECES = ("the", "old", "whale", "##s", "saw", "rome")
SENTENCE = ("The", "old", "whales", "saw", "ROME", "the", "Old", "whale")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    from masked_models import make_masked_lm

    return make_masked_lm(tmp_path_factory.mktemp("bert") / "tiny", PIECES)


def plain(folder: str, tokens: tuple[str, ...], start: int, end: int, layers: list[int]) -> np.ndarray:
    """One sentence, its words tokenised one by one, without batches."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    pieces = [tokenizer.encode(each, add_special_tokens=False) for each in tokens]
    ids = [tokenizer.cls_token_id, *(piece for each in pieces for piece in each), tokenizer.sep_token_id]
    first = 1 + sum(map(len, pieces[:start]))
    last = first + sum(map(len, pieces[start:end]))
    with torch.no_grad():
        states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
    mean = sum(states[each][0] for each in layers) / len(layers)
    return mean[first:last].mean(dim=0).numpy()


@pytest.mark.heavy
@pytest.mark.parametrize("layers", [None, "0", "0-1", "1", "0-2", "2"])
def test_spans_and_layers(folder, layers):
    model = find_model(folder, ModelOptions(layers=layers)).load()
    assert model.contextual
    chosen = [*layers_of(layers)] if layers else [2]
    spans = [(0, 1), (2, 3), (1, 3), (6, 8), (5, 8), (0, 8)]
    passages = [Passage(SENTENCE, *span) for span in spans]
    found = model.encode_spans([*passages, Passage(("whale",), 0, 1)])
    wanted = [plain(folder, SENTENCE, *span, chosen) for span in spans]
    wanted.append(plain(folder, ("whale",), 0, 1, chosen))
    assert np.abs(found - np.array(wanted)).max() < 1e-5
    assert np.abs(found[1] - model.encode_spans([Passage(("whales",), 0, 1)])[0]).max() > 1e-3 or layers == "0"


@pytest.mark.heavy
def test_a_text_is_the_mean_of_its_sub_tokens_in_the_layers(folder):
    import torch
    import transformers

    texts = ["the old whale", "Rome", "rome"]
    found = find_model(folder, ModelOptions(layers="0-1", prefix="saw ")).load().encode(texts)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    for text, vector in zip(texts, found, strict=True):
        with torch.no_grad():
            states = model(**tokenizer("saw " + text, return_tensors="pt"), output_hidden_states=True).hidden_states
        assert np.abs((states[0] + states[1])[0].mean(dim=0).numpy() / 2 - vector).max() < 1e-5


@pytest.mark.heavy
def test_a_long_sentence_is_cut_around_the_mention(folder):
    model = find_model(folder).load()
    tokens = ("old",) * 400 + ("rome",) + ("the",) * 400
    found = model.encode_spans([Passage(tokens, 400, 401), Passage(tokens, 0, 1), Passage(tokens, 800, 801)])
    around = [(tokens[145:655], 255), (tokens[:510], 0), (tokens[-510:], 509)]
    for vector, (kept, at) in zip(found, around, strict=True):
        assert np.abs(vector - plain(folder, kept, at, at + 1, [2])).max() < 1e-5
    prefixed = find_model(folder, ModelOptions(prefix="saw ")).load().encode_spans([Passage(tokens, 400, 401)])
    near = plain(folder, ("saw", *tokens[146:655]), 255, 256, [2])
    assert np.abs(prefixed[0] - near).max() < 1e-5


@pytest.mark.heavy
@pytest.mark.parametrize(("mention", "masks"), [("mask", 1), ("masks", 2)])
def test_masked_mentions(folder, mention, masks):
    found = find_model(folder, ModelOptions(mention=mention)).load()
    tokens = (*SENTENCE[:1], *["[MASK]"] * masks, *SENTENCE[3:])
    wanted = plain(folder, tokens, 1, 1 + masks, [2])
    assert np.abs(found.encode_spans([Passage(SENTENCE, 1, 3)])[0] - wanted).max() < 1e-5


@pytest.mark.heavy
@pytest.mark.parametrize("blank", ["Ġ", "▁"])
def test_tokenizers_whose_sub_tokens_begin_with_a_blank(tmp_path, blank):
    """As of GPT-2 and RoBERTa (bytes), and of XLM-R (SentencePiece); and without special tokens at the ends."""
    import tokenizers
    import torch
    import transformers

    cutter = tokenizers.pre_tokenizers
    vocabulary = {"?": 0, "US": 1, blank + "US": 2, blank + "and": 3, blank + "bus": 4}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = cutter.ByteLevel(add_prefix_space=False) if blank == "Ġ" else cutter.Metaspace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="?", model_max_length=8).save_pretrained(
        tmp_path
    )
    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    torch.manual_seed(1)
    model = transformers.BertModel(transformers.BertConfig(vocab_size=5, **shape)).eval()
    model.save_pretrained(tmp_path)
    tokens = ("US", "bus", "and", "US")
    ids = [1 if blank == "Ġ" else 2, 4, 3, 2]
    with torch.no_grad():
        states = model(torch.tensor([ids])).last_hidden_state[0]
    spans = [(0, 1), (1, 2), (1, 3), (3, 4)]
    found = find_model(str(tmp_path)).load().encode_spans([Passage(tokens, *span) for span in spans])
    assert np.abs(found - [states[start:end].mean(dim=0).numpy() for start, end in spans]).max() < 1e-5


@pytest.mark.heavy
def test_a_mention_without_sub_tokens_is_a_vector_of_zeros(folder):
    model = find_model(folder).load()
    found = model.encode_spans([Passage(("old", "\u200b", "whale"), start, start + 1) for start in (1, 2)])
    assert found.any(axis=1).tolist() == [False, True]
    assert model.remarks() == ["1 mentions without a sub-token: vectors of zeros"]
    assert model.remarks() == []


@pytest.mark.heavy
def test_vectors_are_kept_and_read_again(folder, tmp_path):
    texts, passages = ["the old whale", "rome"], [Passage(SENTENCE, 1, 3)]
    options = ModelOptions(vectors=tmp_path / "kept")
    first = find_model(folder, options).load()
    wanted = first.encode(texts), first.encode_spans(passages)
    files = sorted((tmp_path / "kept").iterdir())
    assert [np.load(each).shape[0] for each in files] in ([2, 1], [1, 2])
    again = find_model(folder, options).load()
    again._encoder = None  # so that whatever is computed fails
    assert np.array_equal(again.encode(texts), wanted[0])
    assert np.array_equal(again.encode_spans(passages), wanted[1])
    other = find_model(folder, ModelOptions(vectors=tmp_path / "kept", layers="0")).load()
    assert not np.allclose(other.encode(texts), wanted[0])


@pytest.mark.heavy
def test_raw_vectors(folder, tmp_path):
    """Without the normalisation that a folder asks for; in the same direction."""
    shutil.copytree(folder, tmp_path / "unit")
    kinds = ("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": path} for kind, path in kinds]
    (tmp_path / "unit" / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "unit" / "1_Pooling").mkdir()
    (tmp_path / "unit" / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    plain, passages = find_model(folder).load(), [Passage(SENTENCE, 1, 3)]
    unit = find_model(str(tmp_path / "unit"))
    raw = find_model(str(tmp_path / "unit"), ModelOptions(raw=True))
    assert (unit.identity["normalised"], raw.identity["normalised"]) == (True, False)
    short, long = unit.load(), raw.load()
    for wanted, of_length_1, as_it_is in (
        [each.encode(["the old whale"]) for each in (plain, short, long)],
        [each.encode_spans(passages) for each in (plain, short, long)],
    ):
        assert np.array_equal(as_it_is, wanted)
        assert np.allclose(of_length_1, wanted / np.linalg.norm(wanted), atol=1e-6)


@pytest.mark.heavy
def test_the_identity_needs_no_model(folder):
    plain = find_model(folder).identity
    assert json.loads(json.dumps(plain)) == plain
    assert plain["pooling"] == "mean"
    others = [{"layers": "0"}, {"prefix": "a "}, {"pooling": "cls"}, {"precision": "bfloat16"}, {"mention": "mask"}]
    seen = [plain, *(find_model(folder, ModelOptions(**each)).identity for each in others)]
    assert all(one != other for at, one in enumerate(seen) for other in seen[:at])
    assert find_model(folder, ModelOptions(vectors=Path("kept"), words=3)).identity == plain


@pytest.mark.heavy
def test_errors(folder):
    with pytest.raises(UserError, match=r"MODEL .*tiny: has the layers 0 to 2, not 3"):
        find_model(folder, ModelOptions(layers="0-3")).load()
