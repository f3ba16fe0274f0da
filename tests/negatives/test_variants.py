"""Phrases that are variants of one, and phrases that only look like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.negatives.variants import is_variant

VARIANTS = """
colour / color; the end / an end; centre of town / center of the town; well-known / well known; e-mail / email
wellknown / well-known; running / run; runs / run; parties / party; his horse's / his horses; analysed / analyzed
archaeology / archeology; stopped / stopping; hoping / hope; used / use; boxes / box; houses / house;
tomatoes / tomato; classes / class; travelled / traveled; falling / fall; missed / miss; goes / go; flies / fly
theatres / theaters; grey / gray; naïve / naive; allāh / allah; added / add; judging / judge; Old Man / old man
poor souls / poor soul; c / c; ?! / ?!; presumed / presume; civilisation / civilizations; trains / training
married / marry; north-east / northeast; gases / gas; visited / visit; rattled / rattle; labourers / laborer
to-day / today; dog cart / dogcart; break down / breakdown; afro-asiatic / afroasiatic; 19th-century / 19th century
covid-19 / covid 19; metres / meter; 1.5% of cases / 1.5% of case; in moscow / moscow
to philadelphia / philadelphia; in the house / house; of these people / people; her life / life
our friend / your friend; of his country / of the country; this room / the room; those old men / old men
with no help / no help
"""
OTHERS = """
horses / houses; universe / university; desert / dessert; latter / later; see / seed; sing / sed; heed / he; so / sow
mourning / morning; four / for; bus / bu; red sea / dead sea; spring / spr; man of war / war of man; the / a; ?! / !?
1990 / 1991; pips / pipe; mars / mares; one end / on end; on the subject / one subject
in june / injuns; wales / walls; tape / tap; rates / rat; care / car; pins / pines; 10 percent / 100 percent
hop / hoped; not known / known
1990s / 1990; 1.5% / 15%; 1/2 / 12; 26 / 2–6; 100% / £100; 100 / 100%; £1,000 / 1,000; 20 / 20°; -5 / 5; 1 2 / 12
in justice / injustice; in sight / insight; a way / away; an other / another; to day / today; go there / got here
part / parted; miss / missing; odd / odds; his good / his goods; interest / interesting; found / founded
middle ages / middle-aged; pleas / pleased; pleas / pleasing; discus / discussed; anders / andres
no help / help; no help / our help; no proof / proof; never known / known; without trouble / trouble
not in mars / in mars; without trouble / of trouble; before the war / after the war; before the war / the war
to russia / of russia; in his way / in this way; its way / on its way; part / parting; ten / tens
some people / these people; at best / best; as possible / possible; on purpose / his purpose; by / the
his rooms / this room; in history / my histories; told her / told; of mine / of; of this / of; her / his
"""


def pairs(text: str) -> list[list[str]]:
    return [pair.strip().split(" / ") for pair in text.replace("\n", ";").split(";") if pair.strip()]


@pytest.mark.parametrize(("text", "variants"), [(VARIANTS, True), (OTHERS, False)], ids=["variants", "others"])
def test_variants(text: str, variants: bool):
    assert [pair for pair in pairs(text) if is_variant(*pair) != variants] == []


@given(st.text("aeinsgd' -é1"), st.text("aeinsgd' -é1"))
def test_it_does_not_matter_which_comes_first(one: str, other: str):
    assert is_variant(one, one)
    assert is_variant(one, other) == is_variant(other, one)
