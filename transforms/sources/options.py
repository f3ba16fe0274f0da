"""The options of raw text and of documents (docs/sources.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from schemas.options import count, number, option, rate, whole


@dataclass(frozen=True)
class Damage:
    """What becomes of damaged input."""

    group: ClassVar[str] = "input"

    on_corrupt: str = option("fail", choices=("fail", "skip"), help="stop at damaged input, or reject it and continue")


@dataclass(frozen=True)
class DocumentOptions(Damage):
    """Which documents are taken, and how many go into a shard; part of the fingerprint."""

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
        choices=("off", "documents", "near", "paragraphs", "near-paragraphs"),
        help="leave out duplicates, exact or near",
        more="With `documents`, the first of several documents with exactly the same text is kept, the others are "
        "`duplicate_document`; with `near`, also the first of several that are alike, the others are `near_duplicate`; "
        "with `paragraphs`, a paragraph (a line of 60 characters or more) is kept only where it occurs first, and a "
        "document with only shorter lines left is `duplicate_paragraph`; with `near-paragraphs`, also the first of "
        "several paragraphs that are alike",
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
class NearRules:
    """Which texts are near duplicates; part of the fingerprint with `--dedup=near` and `--dedup=near-paragraphs`."""

    group: ClassVar[str] = "input"

    near_words: int = option(
        5,
        takes=count,
        metavar="N",
        help="compare texts by their runs of N words",
        more="Upper and lower case, punctuation and white space make no difference",
        source="FineWeb (Penedo et al. 2024, section 3.3) and Lee et al. 2022, section 4.2",
    )
    near_jaccard: float = option(
        0.75,
        takes=number(float, lambda each: 0.5 <= each <= 1, "a number of 0.5 or more and at most 1"),
        metavar="SHARE",
        help="texts are alike if they share this much",
        more="The Jaccard index of the two sets of runs: those in both, of those in either",
        source="FineWeb (Penedo et al. 2024, section 3.3)",
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
