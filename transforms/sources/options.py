"""The options of raw text and of documents (docs/sources.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from schemas.options import count, option, rate, whole


@dataclass(frozen=True)
class DocumentOptions:
    """Which documents are taken, and how many go into a shard; part of the fingerprint."""

    group: ClassVar[str] = "input"

    on_corrupt: str = option("fail", choices=("fail", "skip"), help="stop at damaged input, or reject it and go on")
    max_documents: int | None = option(
        None,
        takes=count,
        metavar="N",
        help="take the first N documents",
        more="in the order of the files' names; one worker reads until it has them",
    )
    sample_rate: float = option(
        1.0,
        takes=rate,
        flag="--sample-documents",
        metavar="RATE",
        unset="all",
        help="take a random share, by hash of the id",
        more="the same documents whatever else is in the run; the others are `not_sampled`",
        source='"a random subset of Books3": Phrase-BERT, section 3',
    )
    sample_seed: int = option(0, takes=whole, metavar="N", help="of that share")
    dedup: str = option(
        "off",
        choices=("off", "documents", "paragraphs"),
        help="leave out exact duplicates",
        more="`documents`: of documents with exactly the same text the first stays, the others are "
        "`duplicate_document`; `paragraphs`: a paragraph (a line of 60 characters or more) stays where it stands "
        "first, and a document of which only shorter lines are left is `duplicate_paragraph`",
    )
    shard_bytes: int = option(
        1 << 20, takes=count, metavar="N", help="text in a shard of documents", unset="1 MiB", more="the size of a unit"
    )


@dataclass(frozen=True)
class ReadOptions:
    """What readers are told; part of the fingerprint."""

    group: ClassVar[str] = "input"

    text_column: str = option("text", metavar="NAME", help="of JSON lines and Parquet")
    max_page_bytes: int = option(
        4_000_000, takes=count, metavar="N", help="reject a wiki page that has more", more="nobody wrote it for reading"
    )
    max_document_bytes: int = option(
        16_000_000,
        takes=count,
        metavar="N",
        help="reject a book, line, row or member that has more",
        more="a long book has 10 MB",
    )
    max_nodes: int = option(200_000, takes=count, metavar="N", help="reject a page with more markup")
    max_depth: int = option(100, takes=count, metavar="N", help="reject a page whose markup nests deeper")
