"""The lexical constraint of paraphrases: how many rows break it, with and without it, and what it costs.

    python -m benchmarks.constraint --paraphrases out/paraphrases
    python -m benchmarks.constraint --phrases out/phrases --rows 20000 --generator prompted --json constraint.json
    python -m benchmarks.constraint --phrases out/phrases --rows 0 --cost gpt2/tokenizer.json

`--paraphrases` is a dataset of paraphrases: its positives are compared with the phrases, its negatives with the
corrupted phrases. `--phrases` is a dataset of phrases: of those of lowest hash, `--rows` texts are drawn by the
generator under the constraint (`--exact-words`: the paper's), and as many for the same seeds without it.

The check shares no code with the constraint but the list of stop words: it cuts texts by a regular expression, and
compares words of content by NLTK's Snowball stems, by lemmas, and as they are. The lemmas are WordNet's where it is
installed, by NLTK's rules. A text counts once, with the worst that it holds: a word of the phrase, another form of one
(a lemma in common), a word of the same stem.

Times are CPU seconds of this process. `--cost` takes a file of the library tokenizers: what the constraint costs of a
decoding step of a GPT-2 of 6 layers, 384 wide, with this vocabulary and 64 rows, one thread.
"""

from __future__ import annotations

import functools
import re
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from benchmarks import harness
from schemas.errors import UserError
from transforms.augmentation.wordnet import WordNet, wordnet
from transforms.paraphrase.words import STOPWORDS

KINDS = ("word", "form", "stem")
_WORD = re.compile(r"[^\W_]+")
_CONTRACTION = re.compile(r"(?<=[a-z])n['’]t\b")


class Found(NamedTuple):
    """A word of a text that its phrase forbids: how it is alike (KINDS), and to which word."""

    kind: str
    word: str
    of: str


class Checker:
    """The independent check of texts against phrases."""

    def __init__(self) -> None:
        from nltk.stem.snowball import SnowballStemmer

        self._stem = functools.lru_cache(1 << 17)(SnowballStemmer("english").stem)
        self._database: WordNet | None = None
        try:
            self._database = wordnet()
        except UserError:
            print("without lemmas: WordNet is not installed (docs/augmentation.md)", file=sys.stderr)

    def overlaps(self, phrase: str, text: str, *, exact: bool = False) -> list[Found]:
        """What a text has in common with a phrase; `exact`: the words as they are, no more."""
        own = [each for each in self._words(_CONTRACTION.sub(" ", phrase)) if each not in STOPWORDS]
        found = []
        for word in self._words(text):
            if word in STOPWORDS:
                continue
            for kind in KINDS[:1] if exact else KINDS:
                alike = next((each for each in own if self._alike(kind, each, word)), None)
                if alike is not None:
                    found.append(Found(kind, word, alike))
                    break
        return found

    def _alike(self, kind: str, one: str, other: str) -> bool:
        if kind == "word":
            return one == other
        if min(len(one), len(other)) < 3:
            return False
        if kind == "stem":
            return bool(self._stem(one) == self._stem(other))
        return not self.lemmas(one).isdisjoint(self.lemmas(other))

    @functools.lru_cache(1 << 17)  # noqa: B019 (one object a process)
    def lemmas(self, word: str) -> frozenset[str]:
        if self._database is None:
            return frozenset()
        found = (self._database.base_forms(word, part) for part in "nvar")
        return frozenset(each for forms in found for each in forms) - STOPWORDS

    @staticmethod
    def _words(text: str) -> list[str]:
        composed = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text.lower()))
        return _WORD.findall("".join(each for each in composed if not unicodedata.combining(each)))


def worst(found: Sequence[Found]) -> str:
    return min((each.kind for each in found), key=KINDS.index, default="none")


# ---- Datasets of paraphrases


def pairs_of(folder: Path) -> Iterator[tuple[str, str, str]]:
    """The pairs of a dataset whose words are kept apart: what kind of text, the phrase, the text."""
    for shard in sorted((folder / "data").glob("*.parquet")):
        table = pq.read_table(shard, columns=["phrase", "positive", "corrupted", "negative"])
        for phrase, positive, corrupted, negative in zip(*(each.to_pylist() for each in table.columns), strict=True):
            yield "positive", phrase, positive
            if negative is not None:
                yield "negative", corrupted, negative


# ---- Texts drawn with and without the constraint


def draw(chosen: Any, phrases: list[str], *, rows: int, draws: int, inflections: bool) -> dict[str, Any]:
    from transforms.paraphrase.constraints import banned_words, violations
    from transforms.paraphrase.generators.interface import Request
    from transforms.paraphrase.generators.registry import load_generator

    generator = load_generator(chosen.generator, unlikely=chosen.rules.unlikely)
    checker = Checker()
    begun = time.process_time()
    requests = [
        Request(each, banned_words(each, inflections=inflections), xxhash.xxh3_64_intdigest(each.encode()))
        for each in phrases[: -(-rows // draws)]
    ]
    requests = [each for each in requests if each.banned]
    result: dict[str, Any] = {"phrases": len(requests), "banned words": time.process_time() - begun}
    for name, banned in (("with", True), ("without", False)):
        asked = requests if banned else [each._replace(banned=()) for each in requests]
        begun = time.process_time()
        drawn = generator.generate(asked, draws=draws)
        seconds = time.process_time() - begun
        kinds: Counter[str] = Counter()
        ours = tokens = empty = 0
        examples: list[tuple[str, str, str]] = []
        for request, candidates in zip(requests, drawn, strict=True):
            for each in candidates:
                found = checker.overlaps(request.text, each.text, exact=not inflections)
                kinds[worst(found)] += 1
                ours += bool(violations(each.text, request.banned, inflections=inflections))
                tokens += each.tokens
                empty += not each.text
                if found and len(examples) < 20:
                    examples.append((request.text, each.text, f"{found[0].kind} {found[0].word}/{found[0].of}"))
        result[name] = {
            "texts": sum(kinds.values()),
            **{kind: kinds[kind] for kind in KINDS},
            "by our own check": ours,
            "empty": empty,
            "seconds": seconds,
            "tokens": tokens,
            "examples": examples,
        }
    return result


# ---- What it costs


def cost(tokenizer_file: Path, phrases: list[str], *, rows: int = 64, steps: int = 20) -> dict[str, float]:
    """Milliseconds of CPU: to read the vocabulary, to begin with 64 rows; of a step the model's, the constraint's."""
    import torch
    from tokenizers import Tokenizer
    from transformers import GPT2Config, GPT2LMHeadModel

    from transforms.paraphrase.constraints import BannedTokens, banned_words

    torch.set_num_threads(1)
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    words = [banned_words(each, inflections=True) for each in phrases[: rows + 1]]
    timer = Timer()
    with timer("vocabulary"):
        tokens = BannedTokens(tokenizer, ends=[0], unlikely=5)
    tokens.rows(words[-1:])
    with timer("beginning"):
        state = tokens.rows(words[:rows])
    others = phrases[1 : rows + 1]  # each row makes another phrase than its own
    texts = [tokenizer.encode(f" {each}" * steps, add_special_tokens=False).ids for each in others]
    model = GPT2LMHeadModel(GPT2Config(n_layer=6, n_embd=384, n_head=6, vocab_size=tokens.size)).eval()
    with torch.inference_mode():
        said = model(torch.randint(0, tokens.size, (rows, 8)), use_cache=True)
        for step in range(steps):
            following = [each[step] for each in texts]
            with timer("constraint"):
                state.restrict(said.logits[:, -1])
                state.advance(following)
            with timer("model"):
                said = model(torch.tensor(following)[:, None], past_key_values=said.past_key_values, use_cache=True)
    for each in ("constraint", "model"):
        timer.spent[each] /= steps
    return {name: 1000 * seconds for name, seconds in timer.spent.items()}


class Timer:
    """CPU seconds of this thread by what they were spent on."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        begun = time.thread_time()
        yield
        self.spent[what] = self.spent.get(what, 0.0) + time.thread_time() - begun


def phrases_of(folder: Path, most: int) -> list[str]:
    """The phrases of lowest hash."""
    shards = sorted((folder / "data").glob("*.parquet"))
    found = pa.concat_tables([pq.read_table(each, columns=["phrase"]) for each in shards]).column("phrase").to_pylist()
    return sorted(found, key=lambda each: xxhash.xxh3_64_intdigest(each.encode()))[:most]


def show(title: str, counts: Counter[str]) -> None:
    total = sum(counts.values())
    shares = ", ".join(f"{kind} {counts[kind]:,} ({counts[kind] / max(total, 1):.2%})" for kind in KINDS)
    print(f"{title}: {total:,} texts; {shares}")


def main(arguments: Sequence[str] | None = None) -> int:
    from transforms.paraphrase.options import ConstraintRules, GeneratorOptions

    parser = harness.arguments(__doc__)
    parser.add_argument("--paraphrases", type=Path, metavar="DIR", nargs="*", default=[])
    parser.add_argument("--phrases", type=Path, metavar="DIR")
    parser.add_argument("--rows", type=int, default=20_000, metavar="N", help="texts to draw; 0: none")
    parser.add_argument("--draws", type=int, default=8, metavar="N", help="texts of each phrase")
    parser.add_argument("--generator", default="phrasemill")
    parser.add_argument("--generator-model", metavar="NAME")
    parser.add_argument("--word-goes-on", type=float, default=ConstraintRules().word_goes_on, metavar="P")
    parser.add_argument("--exact-words", action="store_true")
    parser.add_argument("--cost", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    figures: dict[str, Any] = {}
    checker = Checker()
    for folder in options.paraphrases:
        counts: dict[str, Counter[str]] = {}
        for what, phrase, text in pairs_of(folder):
            found = worst(checker.overlaps(phrase, text, exact=options.exact_words))
            counts.setdefault(what, Counter())[found] += 1
        for what, each in counts.items():
            show(f"{folder} {what}", each)
        figures[str(folder)] = counts
    if options.cost:
        figures["cost"] = cost(options.cost, phrases_of(options.phrases, 65))
        print(", ".join(f"{name} {milliseconds:.2f} ms" for name, milliseconds in figures["cost"].items()))
    if options.phrases and options.rows:
        chosen = Chosen(
            GeneratorOptions(generator=options.generator, generator_model=options.generator_model),
            ConstraintRules(inflections=not options.exact_words, word_goes_on=options.word_goes_on),
        )
        phrases = phrases_of(options.phrases, options.rows)
        found = draw(chosen, phrases, rows=options.rows, draws=options.draws, inflections=chosen.rules.inflections)
        for name in ("with", "without"):
            show(name, Counter({kind: found[name][kind] for kind in KINDS} | {"none": none_of(found[name])}))
            print(f"    {found[name]['seconds']:.1f} s, {found[name]['tokens']:,} tokens, {found[name]['empty']} empty")
            for phrase, text, why in found[name]["examples"][: 5 if name == "without" else 20]:
                print(f"    {phrase} -> {text} ({why})")
        figures["drawn"] = found
    harness.write(options.json, figures)
    return 0


class Chosen(NamedTuple):
    generator: Any
    rules: Any


def none_of(found: dict[str, Any]) -> int:
    return int(found["texts"] - sum(found[kind] for kind in KINDS))


if __name__ == "__main__":
    sys.exit(main())
