"""What decides a generator's output, from its files and options: no model is loaded, and no library that runs it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import xxhash

from schemas.errors import UserError
from transforms.hub import locate_model, sha256_of_model
from transforms.paraphrase.generators.formats import PLACE, TEMPLATE
from transforms.paraphrase.generators.interface import GeneratorIdentity
from transforms.paraphrase.options import GeneratorOptions

VERSION = 1
"""The version of our own code for generators, raised by hand when their output changes."""

EMBEDDED = Path(__file__).parents[1] / "phrasemill" / "model"
"""The paraphraser that comes with the package."""


class Known(NamedTuple):
    """A kind of generator: its class, the model that it has by default, the extra and the libraries that it needs."""

    module: str
    cls: str
    model: str
    extra: str = "transformers"
    libraries: tuple[str, ...] = ("torch", "transformers", "tokenizers")


_OURS = "transforms.paraphrase.generators"
KNOWN = {
    "phrasemill": Known(f"{_OURS}.causal", "CausalGenerator", str(EMBEDDED)),
    "pairs": Known(f"{_OURS}.causal", "CausalGenerator", "filco306/gpt2-base-style-paraphraser"),
    "prompted": Known(f"{_OURS}.causal", "CausalGenerator", "HuggingFaceTB/SmolLM2-135M-Instruct"),
    "seq2seq": Known(f"{_OURS}.seq2seq", "Seq2SeqGenerator", "prithivida/parrot_paraphraser_on_T5"),
    "ctranslate2": Known(
        f"{_OURS}.ctranslate2_generator",
        "CTranslate2Generator",
        str(EMBEDDED),
        "ctranslate2",
        ("ctranslate2", "torch", "transformers", "tokenizers"),
    ),
}
"""By the names that --generator takes."""


def generator_identity(chosen: GeneratorOptions) -> GeneratorIdentity:
    """What decides a generator's output besides the options. UserError if the model, or a library, is missing."""
    known = KNOWN[chosen.generator]
    if chosen.generator_precision == "int8" and chosen.generator != "ctranslate2":
        raise UserError(f"--generator-precision int8: --generator {chosen.generator} has none; choose ctranslate2")
    try:
        libraries = {each: version(each) for each in known.libraries}
    except PackageNotFoundError as error:
        raise UserError(missing(chosen, error.name)) from error
    folder = find_model(chosen)
    short = "" if model_of(chosen) == str(EMBEDDED) else model_of(chosen).rstrip("/").rpartition("/")[2]
    prompt = prompt_of(chosen)
    settings = {"prompt": xxhash.xxh3_128_hexdigest(prompt.encode())} if prompt else {}
    return GeneratorIdentity(chosen.generator, VERSION, short, sha256_of_model(folder), settings, libraries)


def model_of(chosen: GeneratorOptions) -> str:
    """The name of the model: the one chosen, else the generator's own."""
    return chosen.generator_model or KNOWN[chosen.generator].model


def find_model(chosen: GeneratorOptions) -> Path:
    """The folder of the model, fetched from the hub if need be. UserError with the remedy if there is none."""
    name = model_of(chosen)
    if name == str(EMBEDDED) and not (EMBEDDED / "config.json").is_file():
        raise UserError(
            f"--generator {chosen.generator}: the package comes without its model; train it with make paraphraser, or "
            "choose another generator (docs/generators.md)"
        )
    try:
        return locate_model(name)
    except ModuleNotFoundError as error:
        raise UserError(missing(chosen, error.name)) from error
    except OSError as error:
        raise UserError(f"--generator-model: {error}") from error


def prompt_of(chosen: GeneratorOptions) -> str:
    """The template of the prompt; empty for a model that was trained on pairs. UserError if its file is none."""
    if chosen.generator != "prompted":
        if chosen.prompt:
            raise UserError(f"--prompt {chosen.prompt}: --generator {chosen.generator} takes none; choose prompted")
        return ""
    if not chosen.prompt:
        return TEMPLATE
    try:
        template = Path(chosen.prompt).read_text(encoding="utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--prompt {chosen.prompt}: cannot be read ({error}); give a text file") from error
    if template.count(PLACE) != 1:
        raise UserError(f"--prompt {chosen.prompt}: has to hold {PLACE} once, where the phrase goes")
    return template


def missing(chosen: GeneratorOptions, library: str | None) -> str:
    """What is said of a library that is not installed."""
    extra = KNOWN[chosen.generator].extra
    return f"--generator {chosen.generator}: needs {library}: pip install 'phrasemill[{extra}]'"
