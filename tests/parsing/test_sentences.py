"""Sentences and tokens without a model, on spaCy's own tokeniser."""

from __future__ import annotations

import re
import string
import time
from itertools import pairwise

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from spacy.attrs import ORTH

from transforms.parsing import sentences
from transforms.parsing.sentence_ends import sentence_starts
from transforms.parsing.sentences import Tokenizer, Tokens


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer()


# " | " is where a sentence begins.
SENTENCES = {
    "marks": ["He left. | She stayed! | Who knows? | Nobody… | It ended..."],
    "closing quotation marks and brackets": [
        '"I went." | He left.',
        "(He left.) | She stayed.",
        "“Go!” he said. | “No.”",
        "He fell.[1][2] | She rose.",
    ],
    "a small letter follows": ['"Who?" asked Holmes.', "He ran (fast!) to her.", "This, etc. and that.", "So... what?"],
    "a small letter in front of a capital": ["It sells well. | iPhone owners pay.", "The U.S. eBay site."],
    "a speaker follows": [
        '"Who?" Holmes asked. | "Me!" I cried.',
        '"Oh!" Mr. Van Helsing said.',
        '"Who?" | Holmes turned.',
        '"Who?" | He said no.',
    ],
    "titles": ["Mr. The was Dr. No's friend.", "Brig. Gen. Lloyd Tilghman fell.", "Baker v. Carr, i.e. The Case."],
    "initials": [
        "J. R. R. Tolkien wrote it.",
        "George W. Bush won.",
        "It was Plan B. | The first failed.",
        "See J.R.R. Tolkien. | He wrote it.",
        "R. J. I. Smith came.",
        "By A. A. Milne.",
    ],
    "abbreviations": [
        "In the U.S. Army.",
        "He lives in the U.S. | He likes it.",
        "Smith Inc. Chairman Jones.",
        "He joined Smith Inc. | The firm failed.",
        "At 9 a.m. | I left.",
        "St. Louis.",
        "Main St. | The next.",
        "Bvt. Brig. Gen. Atkinson.",
        "Hm. | Caramel.",
    ],
    "further abbreviations": [
        "MR. and MRS. TALBOT came.",
        "DR. SMITH came.",
        "See Par. 12 of it, and Par. Lost, Book II.",
        "Jo. Fletcher wrote it.",
        "They met Jo. | Meg laughed.",
        "Wm. Shakespeare, 3 vols. sm. 8vo.",
        "In act v. sc. 4 he falls.",
    ],
    "a dash instead of white space": [
        "3 May, Bistritz.| —Left Munich at noon.",
        "He left.| --She stayed.| —They slept.",
        "What beauty!| —I had it. | So.",
        'Girl?—there, he said; "Yes!"—and left.',
        "Mr.—Darcy came—at noon.",
    ],
    "numbers": [
        "In 1990. | 25 people came.",
        "No. 5, vol. 3, pp. 79 and p. 80.",
        "I said no. | Holmes left.",
        "Ch. IX of it.",
        "It was c. 1200.",
        "It cost 3.50 francs.",
        "So he came...3 times... 4 times.",
    ],
    "numbers in a list": [
        "1. Open it. | 2. Close it.",
        "Three reasons: 1. Money.",
        "Figure 1. A map.",
        "A. By no means.",
    ],
    "references": ["Newman, Paul. 1980. | The Chadic languages.", "Code, Alan. (1995). | Potentiality."],
    "spaced ellipses": ["It is . . . important.", "It was so . . . . | He left."],
    "nothing at other marks": [
        "Three: Tom, Dick.",
        "He ran; She did not.",
        "He ran -- She did not.",
        "See x.com/A.b?C here",
    ],
}


@pytest.mark.parametrize("marked", [each for texts in SENTENCES.values() for each in texts])
def test_where_sentences_begin(marked: str) -> None:
    text = marked.replace(" | ", " ").replace("| ", "")
    starts = sentence_starts(text)
    assert [text[i:j].strip() for i, j in pairwise([*starts, len(text)])] == re.split(r" ?\| ", marked)


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("", [0]),
        (" ", [0]),
        ("He left. ", [0]),
        ("He left." + ")" * 100 + " She left.", [0]),
        ("He left.\u00a0She\u2003stayed. \t He", [0, 9, 23]),
        (". . ", [0]),
    ],
)
def test_any_whitespace_stands_between_sentences(text: str, starts: list[int]) -> None:
    assert sentence_starts(text) == starts


def test_tokens_and_offsets(tokenizer: Tokenizer) -> None:
    assert tokenizer.sentences(["  He didn't  go. \U0001f600\u00a0Would-be <unk>!", "", " \u00a0\t"]) == [
        [
            Tokens(["He", "did", "n't", "go", "."], [2, 5, 8, 13, 15], [4, 8, 11, 15, 16]),
            Tokens(
                ["\U0001f600", "Would", "-", "be", "<unk>", "!"], [17, 19, 24, 25, 28, 33], [18, 24, 25, 27, 33, 34]
            ),
        ],
        [],
        [],
    ]


OTHER_TOKENIZER = Tokenizer()  # has seen other texts than the fixture

CHARACTERS = st.one_of(
    st.sampled_from(
        [
            *" \u00a0\t\x00.!?…\"'”)]([:;-–,aAzI15$é\u0301\U0001f600\ud83d\u200b",
            "Mr. ",
            "U.S. ",
            "http://",
            ":-)",
            "n't",
        ]
    ),
    st.characters(exclude_characters="\n"),
)
TEXTS = st.lists(CHARACTERS, max_size=60).map("".join)


@examples(300)
@given(texts=st.lists(TEXTS, max_size=3))
def test_every_character_but_whitespace_is_in_one_token(tokenizer: Tokenizer, texts: list[str]) -> None:
    found = tokenizer.sentences(texts)
    assert found == [OTHER_TOKENIZER.sentences([text])[0] for text in texts]
    for text, of_text in zip(texts, found, strict=True):
        end = 0
        for words, starts, ends in of_text:
            assert words
            assert words == [text[start:end] for start, end in zip(starts, ends, strict=True)]
            for start, next_end in zip(starts, ends, strict=True):
                assert not text[end:start].strip()
                assert not re.search(r"\s", text[start:next_end])
                assert start < next_end
                end = next_end
        assert not text[end:].strip()


@examples(300)
@given(text=TEXTS)
def test_a_sentence_begins_after_white_space_and_never_with_a_small_letter_after_a_word(text: str) -> None:
    starts = sentence_starts(text)
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    for start in starts[1:]:
        assert text[start - 1].isspace() or text.startswith(("—", "--"), start)
        assert not text[start].isspace()
        assert re.search(r"[.!?…]\W*\Z", text[:start])


@pytest.mark.parametrize(
    "text",
    [
        "Isn't it Mr. O'Neill's (U.S.-based) e-mail, i.e. a@b.com; 5km at 9:30p.m.? We'll can't-do 1990s' $5.00/lb.",
        "“Ah—well…” ‘tis :-) C++ #tag @you http://x.org/a_(b)?c=1&d=é. End.Next and/or 10-12% <unk> don’t cannot",
    ],
)
def test_tokens_are_those_of_spacy(tokenizer: Tokenizer, text: str) -> None:
    nlp = spacy.blank("en")
    nlp.tokenizer.add_special_case("<unk>", [{ORTH: "<unk>"}])  # type: ignore[attr-defined]
    [found] = tokenizer.sentences([text])
    assert [word for each in found for word in each.words] == [token.text for token in nlp(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("girl?--there", "girl ? -- there"),
        ("girl?—there—is", "girl ? — there — is"),
        ('falsehood!"—and he', 'falsehood ! " — and he'),
        ("St.—Oh, 17—.", "St. — Oh , 17 — ."),
        ("----shire held—£1,000", "---- shire held — £ 1,000"),
        ("it?–and 'yes'–so word–word", "it ? – and ' yes ' – so word – word"),
        ("1914–18, K–12 well-known a-b", "1914–18 , K–12 well - known a - b"),
        ("http://x.org/a--b?c--d", "http://x.org/a--b?c--d"),
        ("—— — --", "—— — --"),
    ],
)
def test_tokens_end_at_dashes(tokenizer: Tokenizer, text: str, words: str) -> None:
    [found] = [[word for each in of_text for word in each.words] for of_text in tokenizer.sentences([text])]
    assert found == words.split()


def test_words_that_spacy_treats_specially_are_left_to_it(tokenizer: Tokenizer) -> None:
    """Only plain words are cut without spaCy; "dont" and "Cant," are not plain."""
    nlp = spacy.blank("en")
    cases = [case for case in nlp.tokenizer.rules if not any(map(str.isspace, case))]  # type: ignore[attr-defined]
    chunks = [f"{case}{mark}" for case in [*cases, *string.ascii_letters, "Word"] for mark in ("", *",;:!?")]
    wrong = [
        chunk
        for chunk, [found] in zip(chunks, tokenizer.sentences(chunks), strict=True)
        if found.words != [token.text for token in nlp.tokenizer(chunk)]
    ]
    assert wrong == []
    assert len(chunks) > 5_000


@pytest.mark.parametrize(
    "unit", ["a", "(", ".", '"', "http://a", "a ", ". ", "! ", "Mr. ", '." ', ". \u00a0 ", "\U0001f600"]
)
def test_time_is_linear_in_hard_text(unit: str) -> None:
    text = (unit * 300_000)[:300_000]
    begin = time.process_time()
    found = Tokenizer().sentences([text])[0]
    assert time.process_time() - begin < 10  # a quadratic step takes minutes
    assert sum(len(word) for each in found for word in each.words) == len("".join(text.split()))


def test_what_is_kept_is_bounded_and_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"Word{number} isn't word{number - 7}. It is." for number in range(40)]
    expected = Tokenizer().sentences(texts)
    monkeypatch.setattr(sentences, "KEPT_CHUNKS", 10)
    monkeypatch.setattr(sentences, "ZONE_CHUNKS", 2)
    tokenizer = Tokenizer()
    strings = len(tokenizer._nlp.vocab.strings)
    assert tokenizer.sentences(texts) == expected
    assert len(tokenizer._kept) < 20
    assert len(tokenizer._nlp.vocab.strings) == strings
    assert len(tokenizer._nlp.vocab) < len(Tokenizer()._nlp.vocab) + 30  # of the 80 words, those of the last dozens
