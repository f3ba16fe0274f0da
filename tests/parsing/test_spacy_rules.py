"""The grammar, on dependency parses written out by hand: word/tag/role/head, heads counted from 0."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.parsing.spacy_rules import UNARY_ORDER, constituents


def bracketed(parse: str) -> str:
    """The words of a parse, with brackets for its constituents."""
    rows = [word.rsplit("/", 3) for word in parse.split()]
    opening = [""] * (len(rows) + 1)
    closing = [""] * (len(rows) + 1)
    for label, start, end in constituents([int(r[3]) for r in rows], [r[2] for r in rows], [r[1] for r in rows]):
        opening[start] += f"({label} "
        closing[end] += ")"
    return "".join(f"{closing[i]} {opening[i]}{row[0]}" for i, row in enumerate(rows)).strip() + closing[len(rows)]


@pytest.mark.parametrize(
    ("parse", "expected"),
    [
        (
            "the/DT/det/1 end/NN/nsubj/5 of/IN/prep/1 the/DT/det/4 day/NN/pobj/2 came/VBD/ROOT/5 ././punct/5",
            "(NP (NP the end) (PP of (NP the day))) (VP came) .",
        ),
        (
            "It/PRP/nsubj/4 will/MD/aux/4 have/VB/aux/4 been/VBN/auxpass/4 done/VBN/ROOT/4 well/RB/advmod/4",
            "(NP It) (VP will (VP have (VP been (VP done (ADVP well)))))",
        ),
        (
            "Did/VBD/aux/2 he/PRP/nsubj/2 go/VB/ROOT/2 ?/./punct/2",
            "Did (NP he) (VP go) ?",
        ),
        ("Is/VBZ/ROOT/0 he/PRP/nsubj/0 old/JJ/acomp/0", "Is (NP he) (ADJP old)"),
        ("Yes/UH/intj/2 ,/,/punct/2 said/VBD/ROOT/2 he/PRP/nsubj/2", "Yes , (VP said) (NP he)"),
        (
            "He/PRP/nsubj/1 tried/VBD/ROOT/1 not/RB/neg/4 to/TO/aux/4 fall/VB/xcomp/1",
            "(NP He) (VP tried not (VP to (VP fall)))",
        ),
        (
            "We/PRP/nsubj/1 ate/VBD/ROOT/1 bread/NN/dobj/1 and/CC/cc/2 butter/NN/conj/2",
            "(NP We) (VP ate (NP bread and butter))",
        ),
        (
            "the/DT/det/1 bread/NN/dobj/6 and/CC/cc/1 the/DT/det/4 butter/NN/conj/1 we/PRP/nsubj/6 ate/VBD/ROOT/6",
            "(NP (NP the bread) and (NP the butter)) (NP we) (VP ate)",
        ),
        (
            "a/NN/ROOT/0 ,/,/punct/0 b/NN/conj/0 and/CC/cc/2 c/NN/conj/2 of/IN/prep/4 d/NN/pobj/5",
            "(NP (NP a , b and c) (PP of (NP d)))",
        ),
        (
            "the/DT/det/1 king/NN/poss/3 's/POS/case/1 men/NNS/nsubj/4 came/VBD/ROOT/4",
            "(NP (NP the king 's) men) (VP came)",
        ),
        (
            "He/PRP/nsubj/1 came/VBD/ROOT/1 ,/,/punct/1 saw/VBD/conj/1 and/CC/cc/3 won/VBD/conj/3",
            "(NP He) (VP (VP came) , (VP saw) and (VP won))",
        ),
        (
            "He/PRP/nsubj/2 has/VBZ/aux/2 come/VBN/ROOT/2 and/CC/cc/2 gone/VBN/conj/2",
            "(NP He) (VP has (VP (VP come) and (VP gone)))",
        ),
        (
            "He/PRP/nsubj/2 has/VBZ/aux/2 come/VBN/ROOT/2 and/CC/cc/2 will/MD/aux/5 stay/VB/conj/2",
            "(NP He) (VP (VP has (VP come)) and (VP will (VP stay)))",
        ),
        (
            "He/PRP/nsubj/1 came/VBD/ROOT/1 and/CC/cc/1 she/PRP/nsubj/4 left/VBD/conj/1",
            "(NP He) (VP came) and (NP she) (VP left)",
        ),
        (
            "by/IN/prep/5 day/NN/pobj/0 and/CC/cc/0 by/IN/conj/0 night/NN/pobj/3 ran/VBD/ROOT/5",
            "(PP (PP by (NP day)) and (PP by (NP night))) (VP ran)",
        ),
        (
            "a/DT/det/5 well/RB/advmod/3 -/HYPH/punct/3 known/VBN/amod/5 large/JJ/amod/5 man/NN/ROOT/5",
            "(NP a (ADJP well - known) large man)",
        ),
        (
            "two/CD/nummod/2 -/HYPH/punct/2 day/NN/compound/4 long/JJ/amod/4 trips/NNS/ROOT/4",
            "(NP (ADJP two - day) long trips)",
        ),
        (
            "old/JJ/amod/3 and/CC/cc/0 tired/JJ/conj/0 men/NNS/ROOT/3",
            "(NP (ADJP old and tired) men)",
        ),
        (
            "He/PRP/nsubj/1 is/VBZ/ROOT/1 too/RB/advmod/3 old/JJ/acomp/1 for/IN/prep/3 that/DT/pobj/4",
            "(NP He) (VP is (ADJP too old (PP for (NP that))))",
        ),
        ("men/NNS/nsubj/4 who/WP/nsubj/2 know/VBP/relcl/0 often/RB/advmod/4 win/VBP/ROOT/4",
         "(NP (NP men) (NP who) (VP know)) (ADVP often) (VP win)"),
        # punctuation: inside a fragment, not at the edges of other phrases, and pairs stay whole
        ("Chapter/NN/ROOT/0 7/CD/nummod/0 ././punct/0", "(NP Chapter 7 .)"),
        (
            "the/DT/det/2 ``/``/punct/2 end/NN/nsubj/4 ''/''/punct/2 came/VBD/ROOT/4",
            "(NP the `` end '') (VP came)",
        ),
        (
            "He/PRP/nsubj/1 died/VBD/ROOT/1 ././punct/1 [/-LRB-/punct/4 4/CD/npadvmod/1 ]/-RRB-/punct/4",
            "(NP He) (VP died) . [ 4 ]",
        ),
    ],
)  # fmt: skip
def test_grammar(parse: str, expected: str) -> None:
    assert bracketed(parse) == expected


ROLES = "nsubj dobj pobj prep amod det conj cc punct ROOT aux advmod acomp relcl poss case npadvmod compound".split()
TAGS = "NN NNP VBD VB MD IN TO JJ RB DT CC CD , . `` '' -LRB- -RRB- HYPH WP".split()


@given(st.lists(st.tuples(st.integers(0, 14), st.sampled_from(ROLES), st.sampled_from(TAGS)), max_size=15))
def test_any_heads_give_nested_spans_in_order(rows: list[tuple[int, str, str]]) -> None:
    heads = [head % len(rows) for head, _, _ in rows]  # cycles and crossing arcs too
    found = constituents(heads, [role for _, role, _ in rows], [tag for _, _, tag in rows])
    assert found == sorted(set(found), key=lambda s: (s.start_token, -s.end_token, UNARY_ORDER.index(s.label)))
    assert all(0 <= start < end <= len(rows) for _, start, end in found)
    assert not any(a < c < b < d for _, a, b in found for _, c, d in found)
