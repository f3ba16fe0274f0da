"""Paraphrases: candidates a CPU second of our decoding loop, of transformers' generate, and of CTranslate2.

    python -m benchmarks.generate --phrases out/phrases --json generate.json

Each gets the same phrases and the same model, in turns, in one process with one thread; the figures are medians.

    ours                    batched, with the constraint: no word of the phrase, nor a form of it
    ours, no constraint     the same without
    generate, one by one    model.generate for one phrase and one draw a call, as the code of the style-transfer
                            paraphraser does it; without a constraint
    generate, draws         the same with all draws of a phrase in one call
    CTranslate2             its own batched sampling in 8-bit integers, without a constraint, where it is installed
    ours on CTranslate2     our loop and constraint, with its model

Without --model it is the package's own paraphraser, or if there is none a random model of its size, which writes until
the limit of length. At the end, some phrases are generated one a batch, and with two threads: how many candidates are
the same.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import harness
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import read_parquet
from transforms.paraphrase.constraints import banned_words, violations
from transforms.paraphrase.generators.identities import EMBEDDED
from transforms.paraphrase.generators.interface import Request
from transforms.paraphrase.options import GeneratorOptions

Call = Callable[[], list[Any]]


def random_model(folder: str, phrases: Sequence[str]) -> str:
    """GPT-2's architecture, 6 layers of 384, with a tokenizer made of the phrases."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(phrases, trainers.BpeTrainer(vocab_size=16_000, special_tokens=["<bos>", "<eos>"]))
    torch.manual_seed(0)
    size = {"vocab_size": 16_000, "n_layer": 6, "n_embd": 384, "n_head": 6, "n_positions": 128}
    config = GPT2Config(**size, bos_token_id=0, eos_token_id=1, tie_word_embeddings=False)
    model = GPT2LMHeadModel(config)
    model.lm_head.weight.data.normal_(std=0.2)
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<bos>", eos_token="<eos>").save_pretrained(folder)
    return folder


def read_phrases(place: str, most: int) -> list[str]:
    """Phrases of two words and more, in the dataset's order."""
    folder = Folder(place)
    texts: list[str] = []
    for shard in read_manifest(folder).splits["train"]:
        texts += read_parquet(folder, shard.path, ["phrase"]).column("phrase").to_pylist()
    return [each for each in texts if " " in each][:most]


def calls(model: str, phrases: Sequence[str], draws: int, precision: str) -> dict[str, tuple[int, Call]]:
    """What is measured, by name: how many phrases it gets, and the call that returns lists of candidates."""
    import torch

    from transforms.paraphrase.generators.registry import load_generator

    chosen = GeneratorOptions("pairs", model, generator_precision=precision)
    generator: Any = load_generator(chosen)
    requests = [Request(each, banned_words(each, inflections=True), place) for place, each in enumerate(phrases)]
    form, sampling = generator.format, {"do_sample": True, "top_p": 0.8, "top_k": 0}

    def ours(over: Any = generator, *, constrained: bool = True) -> list[Any]:
        over.constrained = constrained
        try:
            return over.generate(requests, draws=draws)  # type: ignore[no-any-return]
        finally:
            over.constrained = True

    def theirs(few: int, number: int, times: int) -> list[Any]:
        found = []
        with torch.inference_mode():
            for each in phrases[:few]:
                prompt = torch.tensor([form.prompt(each)], device=generator.device)
                most = form.length(each) + chosen.max_extra_tokens + 1
                for _ in range(times):
                    said = generator.model.generate(
                        prompt,
                        attention_mask=torch.ones_like(prompt),
                        max_new_tokens=most,
                        num_return_sequences=number,
                        pad_token_id=0,
                        **sampling,
                    )
                    found += [form.text(row) for row in said[:, prompt.shape[1] :].tolist()]
        return found

    few = max(1, len(phrases) // 16)
    measured: dict[str, tuple[int, Call]] = {
        "ours": (len(phrases), ours),
        "ours, no constraint": (len(phrases), lambda: ours(constrained=False)),
        "generate, one by one": (few, lambda: theirs(few, 1, draws)),
        "generate, draws": (few, lambda: theirs(few, draws, 1)),
    }
    if find_spec("ctranslate2"):
        on_integers: Any = load_generator(GeneratorOptions("ctranslate2", model, generator_precision="int8"))
        names = generator.tokenizer.convert_ids_to_tokens
        starts = [names(form.prompt(each)) for each in phrases for _ in range(draws)]
        longest = max(map(form.length, phrases)) + chosen.max_extra_tokens + 1

        def integers() -> list[Any]:
            return on_integers.model.generate_batch(  # type: ignore[no-any-return]
                starts,
                max_batch_size=generator.rows,
                max_length=longest,
                include_prompt_in_result=False,
                end_token=names(form.answer("")),
                sampling_topk=0,
                sampling_topp=0.8,
            )

        measured["CTranslate2"] = len(phrases), integers
        measured["ours on CTranslate2"] = len(phrases), lambda: ours(on_integers)
    else:
        print("CTranslate2: skipped: not installed (pip install 'phrasemill[ctranslate2]')")
    return measured


def the_same(model: str, phrases: Sequence[str], draws: int, precision: str) -> dict[str, float]:
    """The share of candidates that are the same, with their log probabilities, as in one batch with one thread."""
    import torch

    from transforms.paraphrase.generators.registry import load_generator

    generator: Any = load_generator(GeneratorOptions("pairs", model, generator_precision=precision))
    requests = [Request(each, banned_words(each, inflections=True), place) for place, each in enumerate(phrases)]
    together, rows, shares = generator.generate(requests, draws=draws), generator.rows, {}
    for name, threads, most in (("one phrase a batch", 1, draws), ("two threads", 2, rows)):
        torch.set_num_threads(threads)
        generator.rows = most
        again = generator.generate(requests, draws=draws)
        same = [
            one == other for own, new in zip(together, again, strict=True) for one, other in zip(own, new, strict=True)
        ]
        shares[name] = sum(same) / len(same)
    torch.set_num_threads(1)
    return shares


def main() -> int:
    parser = harness.arguments(__doc__)
    parser.add_argument("--phrases", required=True, metavar="DIR", help="a dataset of phrases")
    parser.add_argument("--model", metavar="DIR", help="a causal language model trained on pairs")
    parser.add_argument("--few", type=int, default=512, metavar="N", help="phrases")
    parser.add_argument("--draws", type=int, default=8, metavar="N", help="candidates of each")
    parser.add_argument("--times", type=int, default=3, metavar="N", help="how often each is timed")
    parser.add_argument("--precision", default="float32", help="of transformers' model")
    given = parser.parse_args()
    phrases = read_phrases(given.phrases, given.few)
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        own = str(EMBEDDED) if (EMBEDDED / "config.json").is_file() else None
        model = given.model or own or random_model(folder, phrases)
        measured = calls(model, phrases, given.draws, given.precision)
        seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in measured}
        memory: dict[str, int] = {}
        found: dict[str, list[Any]] = {}
        for _ in range(given.times):
            for name, (_, call) in measured.items():
                with harness.Meter() as meter:
                    began = time.process_time()
                    found[name] = call()
                    seconds[name].append((time.process_time() - began, meter.seconds))
                memory[name] = max(memory.get(name, 0), meter.peak)
        same = the_same(model, phrases[:64], given.draws, given.precision)
    for name, (number, _) in measured.items():
        cpu = median(each for each, _ in seconds[name])
        figures[name] = {
            "phrases_a_cpu_second": number / cpu,
            "candidates_a_cpu_second": number * given.draws / cpu,
            "peak_memory_bytes": memory[name],
        }
    one = figures["generate, one by one"]["phrases_a_cpu_second"]
    harness.show(
        f"{Path(model).name}: {len(phrases):,} phrases, {given.draws} draws",
        ["", "phrases/CPU s", "candidates/CPU s", "times one by one", "MiB"],
        [
            [
                name,
                each["phrases_a_cpu_second"],
                each["candidates_a_cpu_second"],
                each["phrases_a_cpu_second"] / one,
                int(each["peak_memory_bytes"] / 2**20),
            ]
            for name, each in figures.items()
        ],
    )
    bans = [set(banned_words(each, inflections=True)) for each in phrases]
    for name in ("ours", "ours, no constraint"):
        wrong = [bool(violations(each.text, ban)) for own, ban in zip(found[name], bans, strict=True) for each in own]
        print(f"{name}: {sum(wrong):,} of {len(wrong):,} candidates hold a banned word")
    cost = figures["ours, no constraint"]["phrases_a_cpu_second"] / figures["ours"]["phrases_a_cpu_second"] - 1
    print(f"the constraint costs {cost:.1%}")
    print("the same candidates: " + ", ".join(f"{share:.2%} with {name}" for name, share in same.items()))
    harness.write(given.json, {"figures": figures, "constraint_cost": cost, "same": same})
    return 0


if __name__ == "__main__":
    sys.exit(main())
