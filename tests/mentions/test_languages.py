"""Dates and ends of sentences in languages other than English."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from schemas.errors import UserError
from transforms.mentions.dates import is_date
from transforms.mentions.languages import date_words, is_english, require, sentence_starts

DATES = {
    "de": "5. Mai|5. Mai 1990|Mai 1990|1. Jan. 1900|Sonntag|Sonntag, 5. Mai|1990er|1990er Jahre|19. Jahrhundert"
    "|44 v. Chr.|im 19. Jahrhundert|1914–1918|20. und 21. Jahrhundert|März",
    "de-AT": "5. Jänner 1990",
    "fr": "1er mai|14 juillet 1789|le 14 juillet|juillet 1789|lundi|années 1990|XIXe siècle|XIXᵉ siècle|50 av. J.-C."
    "|août|les années 1920",
    "es": "5 de mayo|5 de mayo de 1990|mayo de 1990|lunes|siglo XIX|años 1990|44 a. C.",
    "ru": "9 мая|9 мая 1945 года|май 1945|понедельник|XIX век|1990-е годы|44 год до н. э.",
    "ja": "1990年|5月3日|1990年5月3日|1990年代|19世紀|月曜日|紀元前44年",
    "zh": "1990年|5月3日|1990年5月3日|20世纪|20世纪90年代|星期一|公元前44年",
    "ar": "5 مايو|5 مايو 1990|مايو 1990|الاثنين|القرن 19|٥ مايو ١٩٩٠",
    "nl": "5 mei 1990|maandag|19e eeuw|jaren 1990",
    "xx": "1990",
}
NO_DATES = {
    "de": "Berlin|3D|Do 17|12. Panzerdivision|Jahr|Maibaum|V. Chr|123456|von 1990",
    "fr": "Paris|Jésus-Christ|J.-C.|mi|5 jours|Mars attaque|an",
    "es": "Madrid|Mayo Clinic|siglos de oro y plata",
    "ru": "Москва|Н. Э. Бауман",
    "ja": "東京|月|日|火星|明治|日本",
    "zh": "北京|月|日本|年",
    "ar": "القاهرة|م",
    "xx": "5 mai|Berlin",
}


@pytest.mark.parametrize(("language", "text"), [(each, text) for each in DATES for text in DATES[each].split("|")])
def test_dates(language, text):
    assert is_date(text, text, language)


@pytest.mark.parametrize(
    ("language", "text"), [(each, text) for each in NO_DATES for text in NO_DATES[each].split("|")]
)
def test_what_is_no_date(language, text):
    assert not is_date(text, text, language)


@pytest.mark.parametrize(
    ("language", "mention", "title", "date"),
    [
        ("fr", "mars", "Mars (planète)", False),
        ("fr", "mars", "Mars", True),
        ("fr", "5 mars", "5 mars", True),
        ("de", "August", "August der Starke", False),
        ("de", "August", "August", True),
        ("en", "May", "Theresa May", False),
        ("en", "5 May", "May 5", True),
        ("en", "5. Mai", "5. Mai", False),
        ("", "5 May", "May 5", True),
        ("simple", "5 May", "May 5", True),
    ],
)
def test_a_word_with_other_meanings_is_a_date_by_its_target(language, mention, title, date):
    assert is_date(mention, title, language) is date


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("de", "Am 3. Oktober 1990 wurde z. B. Berlin Hauptstadt. |Der 2. Weltkrieg endete 1945. "
               "|Dr. Müller kam am 5. Mai. |Er sagte: „Gut!“ |Das kostet ca. 3 Mio. Euro."),
        ("fr", "M. Dupont est né le 1er mai 1900 à Paris. |Il dit : « Bonjour ! » puis partit. |C'est fini."),
        ("es", "El Sr. García vive en EE. UU. desde 1990. |¿Qué tal? |Bien."),
        ("ru", "Он родился в 1900 г. в Москве. |А. С. Пушкин — поэт."),
        ("zh", "北京是中国的首都。|人口约2100万。|他说：“好！”|真的吗？"),
        ("ja", "東京は日本の首都である。|人口は約1400万人。|本当？"),
        ("ar", "القاهرة هي عاصمة مصر. |هل تعرف ذلك؟ |نعم! |انتهى."),
        ("hi", "दिल्ली भारत की राजधानी है। |यह बड़ा है।"),
        ("xx", "Ena dva tri. |Stiri pet."),
        ("en", "Dr. Ada went to St. Ives. |He came."),
        ("", "In the U.S. he stayed. |He came."),
        ("de", "Ein Satz.\u2028\u00a0|Noch 𝔘 einer.\u00a0"),
        ("de", ""),
        ("de", "Ein Satz"),
    ],
)  # fmt: skip
def test_sentences(language, sentences):
    text, starts = sentences.replace("|", ""), [0]
    for each in sentences.split("|")[:-1]:
        starts.append(starts[-1] + len(each))
    assert sentence_starts(text, language) == starts


@examples(50)
@given(
    st.sampled_from(["de", "fr", "ja", "zh", "ar", "ru", "hi", "xx"]),
    st.text(
        st.sampled_from("aÉ𝔘日. .!?。」„“”\u00a0\u2028\u200b()12,;:…—ا؟।") | st.characters(codec="utf-8"), max_size=40
    ),
)
def test_any_line(language, line):
    starts = sentence_starts(line, language)
    assert starts[0] == 0
    assert starts == sorted({*starts})
    assert all(line[start:].strip() and not line[start].isspace() for start in starts[1:])
    assert starts == sentence_starts(line, language)


@given(st.sampled_from(["de", "ja", "xx"]), st.text(max_size=80))
def test_any_text_may_be_asked(language, text):
    assert is_date(text, text, language) in (True, False)


def test_languages_that_cldr_lacks_have_no_names():
    assert not date_words("xx").every
    assert date_words("de-DE-x-any") == date_words("de")


@pytest.mark.parametrize(("language", "english"), [("en", True), ("en-GB", True), ("", True), ("de", False)])
def test_what_is_english(language, english):
    assert is_english(language) is english


@pytest.mark.parametrize("missing", ["babel", "sentencex"])
def test_a_missing_library_is_named_with_the_remedy(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    require("en")
    with pytest.raises(UserError, match=f"'fr', whose dates and sentences need {missing}: pip install 'phrasemill"):
        require("fr")
