"""The options of mentions, their pairs and aliases (docs/mentions.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from schemas.options import count, option, rate, some_of
from schemas.terms import PAIR_KINDS
from transforms.options import mask_token


@dataclass(frozen=True)
class MentionRules:
    """Which links become mentions; part of the fingerprint."""

    group: ClassVar[str] = "mentions"

    max_mention_words: int = option(10, takes=count, metavar="N", help="leave out longer mentions")
    max_sentence_words: int = option(100, takes=count, metavar="N", help="leave out mentions in longer sentences")
    drop_numbers: bool = option(True, flag="--keep-numbers", help="keep mentions of numbers only")
    drop_dates: bool = option(True, flag="--keep-dates", help="keep dates and years")
    drop_lists: bool = option(True, flag="--keep-lists", help="keep links on lists and disambiguation pages")
    drop_whole_sentences: bool = option(
        True, flag="--keep-whole-sentences", help="keep mentions that are the whole sentence"
    )
    drop_disambiguation: bool = option(True, flag="--keep-disambiguation", help="keep links to disambiguation pages")
    drop_to_lists: bool = option(True, flag="--keep-to-lists", help="keep links to lists")
    drop_red_links: bool = option(False, help="leave out links to titles that are not a page")
    own_titles: bool = option(False, help="also find mentions where a page's text names its title")
    repeated_anchors: bool = option(False, help="also find mentions where a page repeats an anchor without the link")


@dataclass(frozen=True)
class PairRules:
    """Which mentions are paired; part of a fingerprint."""

    group: ClassVar[str] = "pairs"

    kinds: tuple[str, ...] = option(
        PAIR_KINDS,
        takes=some_of(PAIR_KINDS),
        flag="--pairs-by",
        metavar="K,K",
        help="what the two mentions of a pair share",
        source="UCTopic, section 3.1",
    )
    mentions_per_key: int = option(
        32, takes=count, metavar="M", help="mentions of an entity or surface that take part; its surfaces take turns"
    )
    mentions_per_surface: int = option(
        8, takes=count, metavar="N", help="of these, mentions of one surface of one entity; its documents take turns"
    )
    mentions_per_document: int = option(1, takes=count, metavar="N", help="of these, mentions in one document")
    partners: int = option(4, takes=count, metavar="K", help="each of them is paired with the next K on a ring")
    all_pairs: bool = option(
        False, help="pair every two mentions of a key, as in the paper, without caps", source="UCTopic, section 3.1"
    )


@dataclass(frozen=True)
class CopyRules:
    """Which pairs are left out for their sentences; part of a fingerprint."""

    group: ClassVar[str] = "pairs"

    near_copies: float = option(
        0.8, takes=rate, metavar="SHARE", help="leave out pairs whose sentences share this share of their words or more"
    )


@dataclass(frozen=True)
class PairColumns:
    """What a row of pairs holds."""

    group: ClassVar[str] = "pairs"

    masked: bool = option(False, help="also write the masked sentences; otherwise they are masked at load time")


@dataclass(frozen=True)
class MaskRules:
    """What a mention is replaced by; part of a fingerprint."""

    group: ClassVar[str] = "pairs"

    mask_token: str = mask_token("the mention")
    masks: str = option(
        "one",
        choices=("one", "subtokens"),
        help="one mask for a mention, or one for each of its sub-tokens",
        source="subtokens: UCTopic, figure 1",
    )
    tokenizer: str = option("", metavar="NAME", help="a Hugging Face tokenizer of the sub-tokens: a name or folder")
    digest: str = ""
    """Of the tokenizer, see `masking.identified`."""


@dataclass(frozen=True)
class AliasRules:
    """Which surfaces of an entity are paired; part of a fingerprint."""

    group: ClassVar[str] = "aliases"

    aliases_per_entity: int = option(
        10, takes=count, metavar="N", help="surfaces of an entity that are paired, the most frequent"
    )
    min_count: int = option(2, takes=count, flag="--min-alias-count", metavar="N", help="mentions that an alias needs")


@dataclass(frozen=True)
class Tables:
    """What is known of pages beyond the input."""

    group: ClassVar[str] = "mentions"

    tables: tuple[str, ...] = option(
        (),
        repeated=True,
        place=True,
        metavar="FILE",
        help="a wiki's page, redirect or page_props .sql.gz, for Wikidata ids and redirects; may be repeated",
    )
