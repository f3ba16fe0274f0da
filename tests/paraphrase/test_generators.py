"""Paraphrase generators on small real models: a row is what it would be alone, and likely as the model says."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import UserError
from tests.properties import examples
from transforms.paraphrase.constraints import violations
from transforms.paraphrase.generators.formats import PairFormat, PromptFormat, StyleTransferFormat, TaskFormat
from transforms.paraphrase.generators.identities import generator_identity
from transforms.paraphrase.generators.interface import Request
from transforms.paraphrase.options import GeneratorOptions
from transforms.paraphrase.words import words

TEXTS = ["the old whale", "an old ship", "a very old white whale", "the sea", "the white ship"]
REQUESTS = [Request(text, (), 17 * number) for number, text in enumerate(TEXTS)]
SPECIAL = ["<pad>", "<bos>", "<eos>", "<tokens>", "<verb>"]


@functools.cache
def tokenizer(*, style_transfer: bool = False) -> Any:
    """A byte-level one, trained on TEXTS."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = SPECIAL if style_transfer else SPECIAL[:3]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        TEXTS * 9, trainers.BpeTrainer(vocab_size=330, special_tokens=special, initial_alphabet=alphabet)
    )
    named = {"pad_token": "<pad>", "bos_token": "<bos>", "eos_token": "<eos>"}
    return PreTrainedTokenizerFast(tokenizer_object=made, **named)


def saved(folder: Path, model: Any, spread: float, **named: Any) -> str:
    """A random model whose tokens differ in likelihood, and its tokenizer, as files."""
    import torch

    model.get_output_embeddings().weight.data.normal_(std=spread, generator=torch.Generator().manual_seed(1))
    model.save_pretrained(folder)
    tokenizer(**named).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, str]:
    import torch
    from transformers import (
        GPT2Config,
        GPT2LMHeadModel,
        LlamaConfig,
        LlamaForCausalLM,
        T5Config,
        T5ForConditionalGeneration,
    )

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("generators")
    size = {"vocab_size": len(tokenizer()), "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2}
    gpt2 = GPT2Config(n_layer=2, n_embd=32, n_head=2, n_positions=128, **size)
    own = {"vocab_size": len(tokenizer(style_transfer=True))}
    with_types = GPT2Config(n_layer=2, n_embd=32, n_head=2, n_positions=128, **{**size, **own})
    llama = LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, **size
    )
    t5 = T5Config(
        d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0, pad_token_id=0, **size
    )
    return {
        "pairs": saved(folder / "pairs", GPT2LMHeadModel(gpt2), 0.4),
        "style": saved(folder / "style", GPT2LMHeadModel(with_types), 0.4, style_transfer=True),
        "prompted": saved(folder / "prompted", LlamaForCausalLM(llama), 0.4),
        "seq2seq": saved(folder / "seq2seq", T5ForConditionalGeneration(t5), 0.4),
    }


@pytest.fixture(scope="module")
def load(models, tmp_path_factory):
    from transforms.paraphrase.generators.registry import load_generator

    @functools.cache
    def loaded(name: str, **options: Any) -> Any:
        kind = {"style": "pairs"}.get(name, name)
        model = models[{"ctranslate2": "pairs"}.get(name, name)]
        return load_generator(GeneratorOptions(kind, model, **{"max_extra_tokens": 4, **options}))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield loaded


KINDS = ["pairs", "style", "prompted", "seq2seq", "ctranslate2"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_what_it_would_be_alone(load, kind):
    generator = load(kind)
    together = generator.generate(REQUESTS, draws=6)
    assert generator.generate(REQUESTS[::-1], draws=6) == together[::-1]
    assert [generator.generate([each], draws=6)[0] for each in REQUESTS] == together
    first, rest = generator.generate(REQUESTS, draws=2), generator.generate(REQUESTS, draws=4, first_draw=2)
    assert [one + other for one, other in zip(first, rest, strict=True)] == together
    generator.rows, rows = 12, generator.rows
    assert generator.generate(REQUESTS, draws=6) == together
    generator.rows = rows
    assert len({each.text for each in together[0]}) > 2
    other = generator.generate([each._replace(seed=each.seed + 1) for each in REQUESTS], draws=6)
    assert all(one != another for one, another in zip(together, other, strict=True))


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_the_log_probability_is_that_of_the_model(load, kind):
    """Of the tokens drawn, by one pass of transformers without cache, and by `pair_likelihoods` where they are those
    of the text.
    """
    import torch

    from transforms.paraphrase.generators import decoding

    generator = load(kind, temperature=1.5)
    seen: list[Any] = []
    decode = decoding.decode
    form = generator.format
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "transforms.paraphrase.generators.torch_generator.decode",
            lambda steps, prompts, *rest, **named: (
                seen.append((prompts, decode(steps, prompts, *rest, **named))) or seen[-1][1]
            ),
        )
        found = generator.generate([Request(each, ("ship",), 3) for each in TEXTS], draws=3)
    checked = 0
    for prompts, drawn in seen:
        for row, length in enumerate(drawn.lengths):
            prompt, tokens = list(form.prefix) + prompts[row // 3], drawn.tokens[row, :length].tolist()
            with torch.inference_mode():
                if kind == "seq2seq":
                    said = generator.model(
                        input_ids=torch.tensor([prompt]), decoder_input_ids=torch.tensor([[0, *tokens[:-1]]])
                    ).logits[0]
                else:
                    types = None
                    if kind == "style":
                        types = torch.tensor([[3] * (len(prompt) - 1) + [4] * length])
                    more = {} if types is None else {"token_type_ids": types}
                    ids = torch.tensor([prompt + tokens[:-1]])
                    said = generator.model(input_ids=ids, **more).logits[0, -length:]
            expected = torch.log_softmax(said.double(), dim=1)[range(length), tokens].sum()
            assert drawn.log_probabilities[row] == pytest.approx(float(expected), abs=1e-4)
            checked += 1
    assert checked == 3 * len(TEXTS)
    pairs = [(text, each.text) for text, own in zip(TEXTS, found, strict=True) for each in own]
    drawn_all = [each for own in found for each in own]
    measured = generator.pair_likelihoods(pairs)
    same = [
        (one, two)
        for one, two in zip(drawn_all, measured, strict=True)
        if one.finished and one.tokens == two.tokens and kind != "prompted"
    ]
    assert all(one.log_probability == pytest.approx(two.log_probability, abs=0.002) for one, two in same)
    assert measured == [generator.pair_likelihoods([pair])[0] for pair in pairs]


@pytest.mark.parametrize("kind", KINDS)
def test_the_constraint_holds_in_each_row(load, kind):
    generator = load(kind)
    free = generator.generate(REQUESTS, draws=8)
    bans = [tuple(sorted({word for each in own for word in words(each.text)})) for own in free]
    bans[1] = ()
    requests = [each._replace(banned=banned) for each, banned in zip(REQUESTS, bans, strict=True)]
    found = generator.generate(requests, draws=8)
    wrong = [
        sum(bool(violations(each.text, banned)) for own, banned in zip(drawn, bans, strict=True) for each in own)
        for drawn in (found, free)
    ]
    assert wrong[0] == 0 < wrong[1]
    assert found[1] == free[1]


def test_tokens_are_drawn_as_often_as_they_are_likely():
    import torch

    from transforms.paraphrase.generators.sampling import Sampling, draw, nuclei

    shares = np.array([[0.4, 0.1, 0.3, 0.2], [0.25, 0.25, 0.3, 0.2]])
    found = nuclei(torch.from_numpy(np.log(shares)).float(), Sampling(top_p=0.85))
    row = np.repeat([0, 1], 8_000)
    for step in range(2):
        places = draw(found, row, np.arange(16_000, dtype=np.uint64) // 4, np.arange(16_000, dtype=np.uint64) % 4, step)
        for each, wanted in ((0, [4 / 9, 0, 3 / 9, 2 / 9]), (1, shares[1])):
            counts = np.bincount(found.tokens[places[row == each]], minlength=4)
            assert np.abs(counts / 8_000 - wanted).max() < 0.02


def expected_nucleus(logits: list[float], top_p: float, top_k: int, temperature: float) -> set[int]:
    """The definition in plain Python: whole groups of tokens that are exactly as likely."""
    scores = np.array(logits) / temperature
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    order = sorted(range(len(logits)), key=lambda token: -scores[token])
    kept: list[int] = []
    for token in order:
        if kept and (shares[kept].sum() >= top_p or len(kept) == (top_k or len(logits))):
            break
        kept.append(token)
    return {token for token in order if scores[token] >= scores[kept[-1]]}


@given(
    rows=st.lists(
        st.lists(st.sampled_from([-50.0, -12.0, -3.0, -1.0, 0.0, 0.25, 2.0, 4.0, 30.0]), min_size=9, max_size=9),
        min_size=1,
        max_size=4,
    ),
    top_p=st.sampled_from([0.1, 0.8, 0.93]),
    top_k=st.sampled_from([0, 1, 4]),
    temperature=st.sampled_from([0.5, 1.0, 8.0]),
)
@examples(60)
def test_the_nucleus(rows, top_p, top_k, temperature):
    import torch

    from transforms.paraphrase.generators.sampling import Sampling, nuclei

    found = nuclei(torch.tensor(rows), Sampling(top_p, top_k, temperature))
    parts = np.split(found.tokens, found.starts[1:-1])
    for row, tokens in zip(rows, parts, strict=True):
        wanted = [expected_nucleus(row, top_p + least, top_k, temperature) for least in (-1e-5, 1e-5)]
        assert {*tokens.tolist()} in wanted  # the last bits of float32 may decide
        assert len({*tokens.tolist()}) == len(tokens)


def test_a_row_that_may_not_go_on():
    """As inside of a character at the last token: the model's own choice is taken, and the other rows are as before."""
    import torch

    from transforms.paraphrase.generators.decoding import _next
    from transforms.paraphrase.generators.sampling import Sampling

    def restrict(logits: torch.Tensor) -> torch.Tensor:
        logits[0] = -torch.inf
        logits[1, 1] = -torch.inf
        return logits

    rows, seeds = np.array([0, 1]), np.array([7, 7], np.uint64)
    logits = torch.tensor([[0.0, 50.0, 0.0], [0.0, 50.0, 40.0]])
    tokens, _ = _next(logits, rows, seeds, seeds, 0, Sampling(), restrict)
    assert tokens.tolist() == [1, 2]


def test_formats():
    """The tokens of each format, as the models' own code has them."""
    plain = tokenizer()
    whale, ship = (plain.encode(each, add_special_tokens=False) for each in ("the old whale", "ship"))
    pairs = PairFormat(plain)
    assert (pairs.prompt("the old whale"), pairs.answer("ship")) == ([*whale, 1], [*ship, 2])
    assert pairs.alone("ship") == ([1], [*ship, 2])
    assert pairs.text([*whale, 2]) == "the old whale"
    assert TaskFormat(plain).prompt("ship") == [*plain.encode("paraphrase: ship", add_special_tokens=False), 2]

    released = tokenizer(style_transfer=True)
    assert StyleTransferFormat.fits(released)
    assert not StyleTransferFormat.fits(plain)
    ship = released.encode("ship", add_special_tokens=False)
    style = StyleTransferFormat(released)
    assert style.prompt("ship") == [0] * (50 - len(ship)) + ship + [1]
    assert len(style.prompt("ship " * 90)) == 51
    assert style.segments == (3, 4)

    asked = PromptFormat(plain, "ship: sea\n{phrase}\nso:")
    assert list(asked.prefix) == plain.encode("ship: sea\n", add_special_tokens=False)
    assert asked.prompt("the old whale") == plain.encode("the old whale\nso:", add_special_tokens=False)
    assert asked.text(plain.encode(" the  ship\nsea")) == "the ship"
    breaks = {each for each in range(len(plain)) if "\n" in plain.decode([each])}
    assert {*np.flatnonzero(asked.is_end(len(plain))).tolist()} == {2, *breaks}


@pytest.mark.parametrize(
    ("chosen", "error"),
    [
        ({"generator": "pairs", "generator_model": "nowhere"}, r"--generator-model: no model 'nowhere': neither"),
        ({"generator": "pairs", "prompt": "p.txt"}, r"--prompt p.txt: --generator pairs takes none; choose prompted"),
        ({"generator": "prompted", "prompt": "none.txt"}, r"--prompt none.txt: cannot be read \(.*\); give a text"),
        ({"generator": "prompted", "prompt": "bad.txt"}, r"--prompt bad.txt: has to hold {phrase} once"),
    ],
)
def test_what_is_missing_is_said(models, tmp_path, monkeypatch, chosen, error):
    monkeypatch.chdir(tmp_path)
    Path("bad.txt").write_text("{phrase} is {phrase}")
    with pytest.raises(UserError, match=error):
        generator_identity(GeneratorOptions(**{"generator_model": models["pairs"], **chosen}))


def test_the_identity_covers_the_prompt(models, tmp_path):
    chosen = GeneratorOptions(generator="prompted", generator_model=models["prompted"])
    plain = generator_identity(chosen)
    assert plain == generator_identity(chosen)
    assert (plain.generator, plain.model) == ("prompted", "prompted")
    (tmp_path / "own.txt").write_text("{phrase} =")
    own = generator_identity(GeneratorOptions(**{**vars(chosen), "prompt": str(tmp_path / "own.txt")}))
    assert own.settings != plain.settings
    assert own._replace(settings=plain.settings) == plain
