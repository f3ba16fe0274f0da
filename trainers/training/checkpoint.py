"""The checkpoint of a training: a file that is whole or not there, from which the same training goes on exactly."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xxhash
from torch import nn

from schemas.errors import UserError
from transforms.arrays import mix64

CHECKPOINT = "checkpoint.pt"


def write_checkpoint(output: Path, fingerprint: str, **state: Any) -> None:
    """Tensors, numbers, texts, and lists and dictionaries of these."""
    file = output / CHECKPOINT
    beside = file.with_name(file.name + ".new")
    with beside.open("wb") as opened:
        torch.save({"fingerprint": fingerprint, **state}, opened)
        opened.flush()
        os.fsync(opened.fileno())
    os.replace(beside, file)


def read_checkpoint(output: Path, fingerprint: str, device: torch.device) -> dict[str, Any] | None:
    """What was written; None if nothing was. UserError if it is of another training, or damaged."""
    file = output / CHECKPOINT
    if not file.exists():
        return None
    try:
        saved: dict[str, Any] = torch.load(file, map_location=device, weights_only=True)
    except (RuntimeError, OSError, EOFError, ValueError, KeyError) as error:
        raise UserError(f"{file}: cannot be read ({' '.join(str(error).split())[:200]}); remove it") from error
    if saved["fingerprint"] != fingerprint:
        raise UserError(
            f"{file}: is a checkpoint of another training (other data or options); go on with those, choose another "
            "--output, or remove it"
        )
    return saved


def remove_checkpoint(output: Path) -> None:
    (output / CHECKPOINT).unlink(missing_ok=True)


def settings_of(options: Any, free: tuple[str, ...]) -> dict[str, Any]:
    """The options that decide the weights, for JSON: all but those that are `free`."""
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in asdict(options).items()
        if name not in free
    }


def digest_of(network: nn.Module) -> str:
    """A hash of a network's state: weights and buffers, with their names."""
    digest = xxhash.xxh3_128()
    for name, value in network.state_dict().items():
        tensor = value.detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {[*tensor.shape]}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy() if tensor.numel() else b"")
    return digest.hexdigest()


def seed_torch(*numbers: int) -> None:
    """Seed torch's generators by a hash of some numbers, such as the seed, the step, the rank and the chunk.

    So no state of a generator has to be kept.
    """
    mixed = np.zeros(1, np.uint64)
    for number in numbers:
        mixed = mix64(mixed + np.array([number], np.int64).astype(np.uint64))
    torch.manual_seed(int(mixed[0] >> np.uint64(1)))
