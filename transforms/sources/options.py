"""The options of raw text and of documents (docs/sources.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from schemas.options import count, option, rate, whole


@dataclass(frozen=True)
class DocumentOptions:
    """Which documents are taken, and how many go into a shard; part of the fingerprint."""

    group: ClassVar[str] = "input"

    on_corrupt: str = option("fail", choices=("fail", "skip"), help="stop at damaged input, or reject it and continue")
    max_documents: int | None = option(
        None,
        takes=count,
        metavar="N",
        help="take the first N documents",
        more="In the order of the files' names; one worker reads until it has them",
    )
    sample_rate: float = option(
        1.0,
        takes=rate,
        flag="--sample-documents",
        metavar="RATE",
        unset="all",
        help="take a random share, by hash of the id",
        more="The choice does not depend on the other documents; those left out are `not_sampled`",
        source='"a random subset of Books3": Phrase-BERT, section 3',
    )
    sample_seed: int = option(0, takes=whole, metavar="N", help="the seed of that share")
    dedup: str = option(
        "off",
        choices=("off", "documents", "paragraphs"),
        help="leave out exact duplicates",
        more="With `documents`, the first of several documents with exactly the same text is kept, the others are "
        "`duplicate_document`; with `paragraphs`, a paragraph (a line of 60 characters or more) is kept only where it "
        "occurs first, and a document with only shorter lines left is `duplicate_paragraph`",
    )
    shard_bytes: int = option(
        1 << 20,
        takes=count,
        metavar="N",
        help="text in a shard of documents",
        unset="1 MiB",
        more="This is the size of a unit of work",
    )


@dataclass(frozen=True)
class ReadOptions:
    """How files are read; part of the fingerprint."""

    group: ClassVar[str] = "input"

    text_column: str = option(
        "text", metavar="NAME", help="the column or field of Parquet or JSON lines that holds the text"
    )
    link_sections: str = option(
        "drop",
        choices=("drop", "keep"),
        help="the sections of a wiki page that only list other pages, such as See also and External links",
        more="Known by their names in 23 languages; in a wiki of another language nothing is dropped",
    )
    max_page_bytes: int = option(
        4_000_000,
        takes=count,
        metavar="N",
        help="reject a larger wiki page",
        more="In an HTML dump a page's line may have 5 times as many bytes, and its text this many characters",
    )
    max_document_bytes: int = option(
        16_000_000,
        takes=count,
        metavar="N",
        help="reject a larger book, line, row or member",
        more="A long book has 10 MB",
    )
    max_nodes: int = option(
        200_000,
        takes=count,
        metavar="N",
        help="reject a page with more markup",
        more="`{{`, `[[`, `{|` and `<` of wikitext; of HTML 5 times as many tags",
    )
    max_depth: int = option(
        100,
        takes=count,
        metavar="N",
        help="reject a page whose markup nests deeper",
        more="Templates and links of wikitext, elements of HTML",
    )
