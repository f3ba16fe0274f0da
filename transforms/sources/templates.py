"""What is kept of a template where losing it would break the sentence around it.

Templates are programs of the wiki that a dump does not run. Most of them (boxes, citations, notices) are no part of
the prose and vanish. The few here stand for words, numbers or signs; each is given as the wikitext that it stands
for: a number is the positional argument to keep (-1: the last), a string is that string, a function computes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeAlias


class Arguments(NamedTuple):
    """A template's arguments, stripped; positional ones may also have been given by number (`1=`)."""

    positional: list[str]
    named: dict[str, str]

    def at(self, index: int) -> str:
        """The positional argument, counted from 0 or from the end; empty if there is none."""
        try:
            return self.positional[index]
        except IndexError:
            return ""

    def first_of(self, *names: str) -> str:
        return next((self.named[name] for name in names if self.named.get(name)), "")


Expansion: TypeAlias = int | str | Callable[[Arguments], str]

_PIPE_OUTSIDE_LINKS = re.compile(r"\|(?![^\[\]]*\]\])")
_NAMED = re.compile(r"\s*([\w -]{1,40}?)\s*=(.*)", re.DOTALL)


def parse_arguments(content: str) -> Arguments:
    """The arguments in what stands between a template's braces; nested templates are expanded already."""
    parts = (_PIPE_OUTSIDE_LINKS.split(content) if "[[" in content else content.split("|"))[1:]
    positional: list[str] = []
    named: dict[str, str] = {}
    for part in parts:
        match = _NAMED.match(part) if "=" in part else None
        if match is None:
            positional.append(part.strip())
        elif match[1] == str(len(positional) + 1):
            positional.append(match[2].strip())
        else:
            named[match[1].lower()] = match[2].strip()
    return Arguments(positional, named)


@lru_cache(maxsize=4096)
def expansion_of(name: str) -> Expansion | None:
    """How to expand the template of this name as written, None if it vanishes."""
    name = re.sub(r"[\s_]+", " ", name).strip().lower()
    name = re.sub(r"^(?:safesubst|subst|template|msg) ?: ?", "", name)
    if name.startswith("formatnum:"):
        return name.removeprefix("formatnum:").strip()
    if name.startswith("lang-") and name != "lang-rus":
        return _labelled(LANGUAGES.get(name[5:].split("-")[0], ""))
    return KEPT.get(name)


def expand(expansion: Expansion, content: str) -> str:
    """The wikitext that stands for a kept template; `content` is what stands between its braces."""
    if isinstance(expansion, str):
        return expansion
    arguments = parse_arguments(content)
    if isinstance(expansion, int):
        return arguments.at(expansion)
    return expansion(arguments)


# Functions named for what they make of the arguments.


def _labelled(language: str) -> Expansion:
    def expansion(a: Arguments) -> str:
        return f"{language}: {a.at(0)}" if language and a.at(0) else a.at(0)

    return expansion


def _joined(separator: str) -> Expansion:
    return lambda a: separator.join(filter(None, a.positional))


def _before(prefix: str) -> Expansion:
    return lambda a: prefix + a.at(0) if a.at(0) else ""


def _after(suffix: str) -> Expansion:
    return lambda a: a.at(0) + suffix if a.at(0) else ""


def _block(a: Arguments) -> str:
    return f"\n\n{a.at(0) or a.first_of('text', 'quote', 'content')}\n\n"


def _text_argument(a: Arguments) -> str:
    return a.first_of("text") or a.at(-1)


def _years(prefix: str) -> Expansion:
    return lambda a: prefix + " " + "–".join(filter(None, a.positional[:2])) if a.at(0) else prefix


UNITS = {
    "c": "°C", "f": "°F", "k": "K", "sqmi": "sq mi", "sqft": "sq ft", "sqkm": "km2", "cuft": "cu ft", "cuin": "cu in",
    "e3km2": "thousand km2", "e6km2": "million km2", "usgal": "US gal", "impgal": "imp gal", "ftin": "ft",
    "lb-f": "lbf", "kph": "km/h", "mi/h": "mph", "lk": "", "e6m3": "million m3", "tonne": "tonnes", "lt": "long tons",
    "st": "short tons", "ton": "tons", "mile": "miles", "acre": "acres", "hands": "hands", "pc": "pc", "ly": "light-years",
}  # fmt: skip
_RANGES = {
    "-": "–", "–": "–", "to": " to ", "and": " and ", "or": " or ", "by": " by ", "x": " × ", "×": " × ", "+/-": " ± ",
    "±": " ± ", "to(-)": " to ", "and(-)": " and ", ",": ", ",
}  # fmt: skip


def _convert(a: Arguments) -> str:
    """The measure as the author gave it: {{convert|5|to|10|km|mi}} is "5 to 10 km", {{convert|5|ft|11|in}} "5 ft 11 in"."""
    words = list(a.positional)
    value = words.pop(0) if words else ""
    while len(words) >= 2 and words[0].lower() in _RANGES:
        value += _RANGES[words[0].lower()] + words[1]
        words = words[2:]
    unit = words.pop(0) if words else ""
    unit = UNITS.get(unit.lower(), unit)
    if len(words) >= 2 and unit in {"ft", "lb", "st", "mi"} and re.fullmatch(r"[\d.,/]+", words[0]):
        return f"{value} {unit} {words[0]} {words[1]}"
    hyphen = "-" if a.named.get("adj") in {"on", "mid"} else " "
    return f"{value}{hyphen}{unit}" if unit else value


def _value(a: Arguments) -> str:
    """{{val|1.5|e=6|u=km}} is "1.5×10^6 km"."""
    exponent = f"×10^{a.named['e']}" if a.named.get("e") else ""
    units = a.first_of("u", "ul", "up")
    return f"{a.at(0)}{exponent} {units}".strip()


def _fraction(a: Arguments) -> str:
    parts = a.positional[:3]
    if len(parts) == 3:
        return f"{parts[0]} {parts[1]}/{parts[2]}"
    return "/".join(parts) if len(parts) == 2 else f"1/{a.at(0)}"


MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def _date(a: Arguments) -> str:
    """{{birth date|1950|1|31}} is "31 January 1950"; the day and the month may be missing."""
    year, month, day = (a.at(0), a.at(1), a.at(2)) if len(a.positional) < 6 else (a.at(0), a.at(1), a.at(2))
    if month.isdecimal() and 1 <= int(month) <= 12:
        month = MONTHS[int(month) - 1]
    date = [day.lstrip("0"), month, year]
    if a.named.get("mf") in {"yes", "y"} and day and month:
        return f"{month} {date[0]}, {year}"
    return " ".join(filter(None, date))


def _as_of(a: Arguments) -> str:
    if a.named.get("alt"):
        return a.named["alt"]
    return f"{'as' if a.named.get('lc') else 'As'} of {_date(a)}{a.named.get('post', '')}"


def _nihongo(a: Arguments) -> str:
    """{{nihongo|English|kanji|romaji|extra}} is "English (kanji, romaji, extra)"."""
    inside = ", ".join(filter(None, a.positional[1:4]))
    return f"{a.at(0)} ({inside})" if a.at(0) and inside else a.at(0) or inside


def _nihongo3(a: Arguments) -> str:
    inside = ", ".join(filter(None, (a.at(1), a.at(0))))
    return f"{a.at(2)} ({inside})" if inside else a.at(2)


def _chinese(a: Arguments) -> str:
    named = (a.first_of(*names) for names in (("c", "t"), ("s",), ("p",)))
    return "; ".join(filter(None, named)) or a.at(0)


def _ship(prefix: str) -> Expansion:
    def expansion(a: Arguments) -> str:
        if not a.at(0):
            return ""
        return f"[[{prefix} {a.at(0)} ({a.at(1)})|{prefix} {a.at(0)}]]" if a.at(1) else f"[[{prefix} {a.at(0)}]]"

    return expansion


def _flag(a: Arguments) -> str:
    name = a.named.get("name") or a.at(0)
    return f"[[{name}]]" if name else ""


def _sic(a: Arguments) -> str:
    return "".join(a.positional[:2]) if a.at(0) not in {"", "?", "!"} else ""


def _quoted_gloss(a: Arguments) -> str:
    return f"‘{a.at(0)}’" if a.at(0) else ""


def _script(a: Arguments) -> str:
    return a.at(1) or a.at(0)


def _marriage(a: Arguments) -> str:
    years = "–".join(filter(None, a.positional[1:3]))
    return f"{a.at(0)} (m. {years})" if years else a.at(0)


def _price(a: Arguments) -> str:
    return re.sub(r"(?<=\d)(?=(?:\d{3})+$)", ",", a.at(0))


def _nuclide(a: Arguments) -> str:
    return f"{a.at(0)}-{a.at(1)}" if a.at(1) else a.at(0)


def _music(a: Arguments) -> str:
    signs = {"flat": "♭", "b": "♭", "sharp": "♯", "#": "♯", "natural": "♮", "doubleflat": "𝄫", "doublesharp": "𝄪"}
    return signs.get(a.at(0).lower(), a.at(1))


LANGUAGES = {
    "ar": "Arabic", "be": "Belarusian", "bg": "Bulgarian", "bn": "Bengali", "bs": "Bosnian", "ca": "Catalan", "cs": "Czech",
    "cy": "Welsh", "da": "Danish", "de": "German", "el": "Greek", "eo": "Esperanto", "es": "Spanish", "et": "Estonian",
    "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish", "gd": "Scottish Gaelic",
    "gl": "Galician", "grc": "Ancient Greek", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian",
    "hy": "Armenian", "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian",
    "kk": "Kazakh", "ko": "Korean", "la": "Latin", "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian", "mn": "Mongolian",
    "mr": "Marathi", "ms": "Malay", "mt": "Maltese", "nl": "Dutch", "no": "Norwegian", "pa": "Punjabi", "pl": "Polish",
    "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sa": "Sanskrit", "sk": "Slovak", "sl": "Slovene",
    "sq": "Albanian", "sr": "Serbian", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai",
    "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "uz": "Uzbek", "vi": "Vietnamese", "yi": "Yiddish", "zh": "Chinese",
    "az": "Azerbaijani", "ber": "Berber", "rus": "Russian", "sco": "Scots", "haw": "Hawaiian", "non": "Old Norse",
    "ang": "Old English", "af": "Afrikaans", "am": "Amharic", "ne": "Nepali", "si": "Sinhala", "tl": "Tagalog",
}  # fmt: skip
"""English names of languages, which {{lang-fr|mot}} writes before the word."""


def _all(expansion: Expansion, *names: str) -> dict[str, Expansion]:
    return dict.fromkeys(names, expansion)


KEPT: dict[str, Expansion] = {
    # Signs and spaces
    **_all("–", "ndash", "en dash", "nsndns"),
    **_all(" – ", "snd", "snds", "spnd", "sndash", "spaced ndash", "spaced en dash", "spndash", "dash"),
    **_all("—", "mdash", "em dash", "mdashb"),
    **_all(" — ", "smd", "spaced mdash", "spaced em dash", "smdash"),
    **_all("'", "'", "apos", "`"),
    **_all("'s", "'s"),
    **_all("' \"", "' \""),
    **_all("\" '", "\" '"),
    **_all("\"'", "\"'"),
    **_all("'\"", "'\""),
    **_all('"', '-"', '"-'),
    **_all(" ", "nbsp", "space", "spaces", "sp", "thinsp", "thin space", "hair space", "hairsp", "gap", "indent", "0", "figure space"),
    **_all(" · ", "·", "dot", "middot", "bullet", "•", "bull", "sep"),
    **_all("|", "!", "pipe"),
    **_all("=", "=", "equals"),
    **_all("×", "times", "×"),
    **_all("−", "minus", "−"),
    **_all("…", "ellipsis", "..."),
    **_all("ʻ", "okina", "ʻ", "wg"),
    **_all("ʾ", "hamza"),
    **_all("ʿ", "ayin", "ayn"),
    **_all("†", "dagger", "extinct"),
    **_all("&", "&", "amp"),
    **_all("°C", "°c"),
    **_all("°F", "°f"),
    **_all("CO2", "co2"),
    **_all("H2O", "h2o"),
    **_all("π", "pi"),
    # Text in another dress
    **_all(
        0,
        "nowrap", "nobr", "nobreak", "no wrap", "nowraplinks", "j", "small", "smaller", "smalldiv", "big", "bigger", "large",
        "larger", "huge", "center", "centre", "midsize", "longitem", "nobold", "noitalic", "noitalics", "normal", "em",
        "strong", "strongbad", "bold", "italic", "italics", "ital", "smallcaps", "sc", "smallcaps all", "sc2", "abbr",
        "abbrv", "tooltip", "abbrlink", "vanchor", "visible anchor", "vis anchor", "linktext", "kbd", "code", "codett",
        "tt", "mono", "monospace", "samp", "var", "mvar", "math", "mathcal", "math2", "sub", "su", "underline", "u",
        "strikethrough", "nastaliq", "script/arabic", "script/hebrew", "unicode", "rtl", "ipa", "phon", "pinyin", "wikt-lang",
        "not a typo", "as written", "typo", "chem name", "proper name", "ill", "interlanguage link", "illm", "lang-rus", "link-interwiki",
        "nihongo2", "zh2", "plainlist", "flatlist", "nowrap begin", "columns-list", "col-list", "cols", "railgauge", "track gauge",
        "flagu", "flagcountry", "flagteam", "keypress", "key press", "key", "button", "asiantitle", "vr", "mono span", "title", "blue", "red",
        "oldstyledate", "old style date", "bibleverse", "noble", "overline", "overarc", "vec", "vol.", "vol", "transl2", "hlist-item",
        "wdl", "fact-inline", "clarify span", "inflation2", "nowiki", "longlink", "citation needed span", "cnspan",
    ),
    **_all(1, "lang", "langnf", "wikt", "rtl-lang", "rtl lang", "ltr-lang", "sort", "sortname2", "hs", "fontcolor", "font color",
           "tooltip2", "wiktlang", "text", "background color", "bg", "span", "resize2", "inflation-year-old"),
    **_all(-1, "transl", "transliteration", "resize", "font", "fontsize", "font size", "color", "colour", "shy2"),
    **_all(_text_argument, "rotate", "align", "font text", "larger font"),
    **_all(_script, "script"),
    **_all(_before("^"), "sup", "exp", "e"),
    **_all(_before("⟨"), "langle"),
    **_all(lambda a: f"⟨{a.at(0)}⟩" if a.at(0) else "", "angbr", "angle bracket", "grapheme", "angbr ipa", "char"),
    **_all(lambda a: f"[{a.at(0)}]" if a.at(0) else "", "bracket", "brackets", "ipaphon"),
    **_all(lambda a: f"/{a.at(0)}/" if a.at(0) else "", "ipaslink", "ipas", "slink/"),
    **_all(_quoted_gloss, "gloss", "glossary link", "tr"),
    **_all(lambda a: f"lit. ‘{a.at(0)}’" if a.at(0) else "", "lit", "literally", "literal translation"),
    **_all(_sic, "sic", "as written sic"),
    **_all(lambda a: f"{a.at(1)} {a.at(0)}".strip() if a.at(1) else a.at(0), "sortdate"),
    **_all(lambda a: f"{a.at(0)} {a.at(1)}".strip(), "sortname"),
    **_all(_nihongo, "nihongo", "nihongo4", "nihongo krt", "korean-name"),
    **_all(_nihongo3, "nihongo3", "nihongo foot"),
    **_all(_chinese, "zh", "lang-zh", "zh-cn", "zh-tw", "linktext-zh", "ko-hhrm"),
    **_all(lambda a: a.first_of("hangul") or a.at(0), "korean", "ko"),
    **_all(_marriage, "marriage"),
    # Numbers, measures, dates
    **_all(_convert, "convert", "cvt", "conv", "cv"),
    **_all(_value, "val"),
    **_all(_fraction, "frac", "fraction", "sfrac", "tmath", "half"),
    **_all(_joined(""), "chem", "chem2", "che", "molecular formula"),
    **_all(_nuclide, "nuclide2"),
    **_all(lambda a: f"{a.at(0)}-{a.at(1)}" if a.at(1) else a.at(0), "nuclide", "simplenuclide", "simplenuclide2"),
    **_all(_years("c."), "circa", "c.", "ca.", "ca", "c"),
    **_all(_years("fl."), "floruit", "fl.", "fl"),
    **_all(_years("r."), "reign", "r."),
    **_all(_date, "date", "start date", "end date", "birth date", "birth date and age", "death date", "death date and age",
           "birth-date", "death-date", "birth-date and age", "bda", "dda", "dts", "film date", "start date and age", "dob", "birth year and age"),
    **_all(_as_of, "as of", "asof"),
    **_all(_price, "format price", "formatprice", "formatnum", "nts", "number", "num", "decimals", "gaps"),
    **_all(_before("US$"), "us$", "usd"),
    **_all(_before("A$"), "a$", "aud"),
    **_all(_before("C$"), "c$", "cad", "can$"),
    **_all(_before("£"), "gbp", "£", "pound sterling"),
    **_all(_before("€"), "eur", "euro", "€"),
    **_all(_before("₹"), "inr", "indian rupee", "rs", "rs."),
    **_all(_before("¥"), "jpy", "yen", "jp¥", "¥"),
    **_all(_before("₩"), "krw", "won"),
    **_all(lambda a: f"{a.first_of('code')} {a.at(0)}".strip(), "currency"),
    **_all(_after("%"), "percentage2", "pct"),
    **_all(_after("%"), "percent2"),
    **_all(_music, "music"),
    # Names and their links
    **{prefix: _ship(prefix.upper()) for prefix in ("uss", "hms", "hmcs", "hmas", "ss", "rms", "sms", "mv", "ms", "usns", "uscgc", "ins")},
    **_all(lambda a: _ship(a.at(0))(Arguments(a.positional[1:], a.named)) if a.at(0) else a.at(1), "ship"),
    **_all(_flag, "flag", "flagcountry2", "flaglink"),
    # Blocks of prose and lists
    **_all(_block, "quote", "blockquote", "cquote", "quotation", "bquote", "quote1", "centered pull quote", "poemquote", "poem quote",
           "verse translation", "pre2", "pre", "poem", "block indent", "block quote"),
    **_all(_joined(", "), "hlist", "comma separated entries", "cslist"),
    **_all(lambda a: "".join(f"\n* {each}" for each in a.positional) + "\n", "ubl", "unbulleted list", "vunblist", "bulleted list",
           "blist", "ordered list", "plain list", "unordered list", "indented plainlist"),
    **_all(lambda a: f"\n; {a.at(0)}\n", "term", "glossary term"),
    **_all(lambda a: f"\n: {a.at(0) or a.first_of('defn')}\n", "defn"),
}  # fmt: skip
