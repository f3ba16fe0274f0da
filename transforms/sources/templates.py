"""The templates that are kept, because without them the sentence around them would break.

Templates are programs of the wiki, and a dump holds only their calls. Most of them (boxes, citations, notices) are not
a part of the prose and are dropped. The few listed here represent words, numbers or signs. Each is given as the
wikitext that replaces it: a number is the positional argument to keep (-1: the last), a string is that string, a
function computes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeAlias


class Arguments(NamedTuple):
    """A template's arguments, stripped; positional ones may also be given by number (`1=`)."""

    positional: list[str]
    named: dict[str, str]

    def at(self, index: int) -> str:
        """A positional argument, counted from 0 or with -1 from the end; empty if there is none."""
        try:
            return self.positional[index]
        except IndexError:
            return ""

    def first_of(self, *names: str) -> str:
        return next((self.named[name] for name in names if self.named.get(name)), "")


Expansion: TypeAlias = int | str | Callable[[Arguments], str]

_TO_BRACKET = re.compile(r"([^\[\]]*)(\]\]|[\[\]])?")
_NAME = re.compile(r"[\w -]{1,40}")


def parse_arguments(content: str) -> Arguments:
    """The arguments in the content of a template's braces, in which nested templates are expanded already."""
    parts = (_split_outside_links(content) if "[[" in content else content.split("|"))[1:]
    positional: list[str] = []
    named: dict[str, str] = {}
    for part in parts:
        before, equals, value = part.partition("=")
        name = before.strip()
        if not equals or not _NAME.fullmatch(name or before[-1:]):
            positional.append(part.strip())
        elif name == str(len(positional) + 1):
            positional.append(value.strip())
        else:
            named[name.lower()] = value.strip()
    return Arguments(positional, named)


def _split_outside_links(content: str) -> list[str]:
    """The parts between pipes. A pipe belongs to a link if the next bracket ends the link."""
    parts = [""]
    start = 0  # of the current part
    for match in _TO_BRACKET.finditer(content):
        if match[2] != "]]":
            at = match.start()
            while (pipe := content.find("|", at, match.end(1))) >= 0:
                parts[-1] = content[start:pipe]
                parts.append("")
                start = at = pipe + 1
    parts[-1] = content[start:]
    return parts


@lru_cache(maxsize=4096)
def expansion_of(name: str) -> Expansion | None:
    """How to expand the template with this name, as written; None if it is dropped."""
    name = re.sub(r"[\s_]+", " ", name).strip().lower()
    name = re.sub(r"^(?:safesubst|subst|template|msg) ?: ?", "", name)
    if name.startswith("formatnum:"):
        return name.removeprefix("formatnum:").strip()
    if name.startswith("lang-") and name != "lang-rus":
        return _labelled(LANGUAGES.get(name[5:].split("-")[0], ""))
    return KEPT.get(name)


def expand(expansion: Expansion, content: str) -> str:
    """The wikitext that replaces a kept template; `content` is what its braces hold."""
    if isinstance(expansion, str):
        return expansion
    arguments = parse_arguments(content)
    if isinstance(expansion, int):
        return arguments.at(expansion)
    return expansion(arguments)


def lists_in(content: str) -> str:
    """The lists that are given to a template as positional arguments, whatever the template does."""
    lists = [each for each in parse_arguments(content).positional if each.startswith("*") or "\n*" in each]
    return _separate("\n".join(lists)) if lists else ""


# Functions from arguments to wikitext, named after their result.


def _labelled(language: str) -> Expansion:
    def expansion(a: Arguments) -> str:
        return f"{language}: {a.at(0)}" if language and a.at(0) else a.at(0)

    return expansion


def _joined(separator: str) -> Expansion:
    return lambda a: separator.join(filter(None, a.positional))


def _before(prefix: str) -> Expansion:
    return lambda a: prefix + a.at(0) if a.at(0) else ""


def _separate(block: str) -> str:
    return f"\n\n{block}\n\n"


def _block(a: Arguments) -> str:
    return _separate(a.at(0) or a.first_of("text", "quote", "content"))


def _columns(a: Arguments) -> str:
    """{{columns|col1=* a|col2=* b}}"""
    return _separate("\n".join(text for name, text in a.named.items() if re.fullmatch(r"col\d", name)))


def _equation(a: Arguments) -> str:
    """{{NumBlk|:|<math>x</math>|1}} is a numbered equation."""
    return f"\n: {a.at(1) or a.first_of('equation')}\n"


def _class_of(a: Arguments) -> str:
    """{{Lbb|Severn}} is a link to the Severn-class lifeboat."""
    return f"[[{a.at(0)}-class lifeboat|{a.at(0)}]]" if a.at(0) else ""


def _years(prefix: str) -> Expansion:
    return lambda a: prefix + " " + "–".join(filter(None, a.positional[:2])) if a.at(0) else prefix


UNITS = {
    "c": "°C", "f": "°F", "k": "K", "sqmi": "sq mi", "sqft": "sq ft", "sqkm": "km2", "cuft": "cu ft", "cuin": "cu in",
    "cumi": "cu mi", "cuyd": "cu yd", "usgal": "US gal", "impgal": "imp gal", "lb-f": "lbf", "kph": "km/h",
    "mi/h": "mph", "mpgimp": "mpg", "mpgus": "mpg", "lbft": "lb ft", "lb.ft": "lb ft", "tonne": "tonnes",
    "lt": "long tons", "ton": "tons", "mile": "miles", "acre": "acres",
    "ly": "light-years", "oilbbl": "barrels", "oilbbl/d": "barrels per day", "koilbbl/d": "thousand barrels per day",
    "moilbbl": "million barrels", "moilbbl/d": "million barrels per day", "goilbbl": "billion barrels",
}  # fmt: skip
_POWERS = {"e3": "thousand ", "e6": "million ", "e9": "billion ", "e12": "trillion "}
_RANGES = {
    "-": "–", "–": "–", "to": " to ", "and": " and ", "or": " or ", "by": " by ", "x": " × ", "×": " × ", "+/-": " ± ",
    "±": " ± ", "to(-)": " to ", "and(-)": " and ", ",": ", ",
}  # fmt: skip
_NUMBER = re.compile(r"[-+−]?\d[\d,.]*(?:[ +]?\d+/\d+)?")


def _convert(a: Arguments) -> str:
    """The measure in its first unit: {{convert|5|to|1000|km|mi}} is "5 to 1,000 km"."""
    words = list(a.positional)
    value = _grouped(words.pop(0)) if words else ""
    while len(words) >= 2 and words[0].lower() in _RANGES:
        value += _RANGES[words[0].lower()] + _grouped(words[1])
        words = words[2:]
    unit = _unit(words.pop(0)) if words else ""
    if len(words) >= 2 and unit in {"ft", "lb", "st", "mi", "yd"} and _NUMBER.fullmatch(words[0]):
        return f"{value} {unit} {words[0]} {words[1]}"
    hyphen = "-" if a.named.get("adj") in {"on", "mid"} and unit.isalpha() else " "
    return f"{value}{hyphen}{unit}" if unit else value


def _unit(written: str) -> str:
    power = re.match(r"e(?:3|6|9|12)(?=\D)", written)
    if power:
        return _POWERS[power[0]] + _unit(written[power.end() :])
    return UNITS.get(written.lower(), written)


def _grouped(number: str) -> str:
    """1234567.25 is 1,234,567.25."""
    whole = re.fullmatch(r"([-+−]?)(\d{4,})((?:\.\d*)?)", number)
    return f"{whole[1]}{int(whole[2]):,}{whole[3]}" if whole and whole[2][0] != "0" else number


def _value(a: Arguments) -> str:
    """{{val|1.5|e=6|u=km}} is "1.5×10^6 km"."""
    exponent = f"×10^{a.named['e']}" if a.named.get("e") else ""
    units = a.first_of("u", "ul", "up")
    return f"{_grouped(a.at(0))}{exponent} {units}".strip()


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
    year, month, day = a.at(0), a.at(1), a.at(2).lstrip("0")
    if month.isdecimal() and 1 <= int(month) <= 12:
        month = MONTHS[int(month) - 1]
    if a.first_of("mf") and day and month:
        return f"{month} {day}, {year}"
    return " ".join(filter(None, (day, month, year)))


def _as_of(a: Arguments) -> str:
    shown = a.named.get("alt") or f"{'as' if a.named.get('lc') else 'As'} of {_date(a)}"
    return shown + a.named.get("post", "")


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


def _ship(prefix: str, a: Arguments) -> str:
    """{{HMS|Hood|51}} is a link to HMS Hood (51), shown without the number."""
    name = f"{prefix} {a.at(0)}".strip()
    if not a.at(0):
        return ""
    if "[[" in name:  # already a link; doubled by each of a hundred templates around it, it would explode
        return name
    return f"[[{name} ({a.at(1)})|{name}]]" if a.at(1) else f"[[{name}]]"


def _prefixed_ship(prefix: str) -> Expansion:
    return lambda a: _ship(prefix, a)


def _flag(a: Arguments) -> str:
    name = a.first_of("name") or a.at(0)
    return f"[[{name}]]" if name else ""


def _enclosed(before: str, after: str) -> Expansion:
    return lambda a: before + a.at(0) + after if a.at(0) else ""


def _items(a: Arguments) -> str:
    return "".join(f"\n* {each}" for each in a.positional) + "\n"


def _marriage(a: Arguments) -> str:
    years = "–".join(filter(None, a.positional[1:3]))
    return f"{a.at(0)} (m. {years})" if years else a.at(0)


def _nuclide(a: Arguments) -> str:
    return f"{a.at(0)}-{a.at(1)}" if a.at(1) else a.at(0)


def _music(a: Arguments) -> str:
    signs = {"flat": "♭", "b": "♭", "sharp": "♯", "#": "♯", "natural": "♮"}
    return signs.get(a.at(0).lower(), a.at(1))


LANGUAGES = {
    "af": "Afrikaans", "am": "Amharic", "ang": "Old English", "ar": "Arabic", "az": "Azerbaijani", "be": "Belarusian",
    "ber": "Berber", "bg": "Bulgarian", "bn": "Bengali", "bs": "Bosnian", "ca": "Catalan", "cs": "Czech", "cy": "Welsh",
    "da": "Danish", "de": "German", "el": "Greek", "eo": "Esperanto", "es": "Spanish", "et": "Estonian", "eu": "Basque",
    "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish", "gd": "Scottish Gaelic", "gl": "Galician",
    "grc": "Ancient Greek", "haw": "Hawaiian", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian",
    "hy": "Armenian", "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian",
    "kk": "Kazakh", "ko": "Korean", "la": "Latin", "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian",
    "mn": "Mongolian", "mr": "Marathi", "ms": "Malay", "mt": "Maltese", "ne": "Nepali", "nl": "Dutch",
    "no": "Norwegian", "non": "Old Norse", "pa": "Punjabi", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "rus": "Russian", "sa": "Sanskrit", "sco": "Scots", "si": "Sinhala", "sk": "Slovak",
    "sl": "Slovene", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu",
    "th": "Thai", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "uz": "Uzbek", "vi": "Vietnamese",
    "yi": "Yiddish", "zh": "Chinese",
}  # fmt: skip
"""English names of languages, which {{lang-fr|mot}} writes before the word."""

_TABLE: tuple[tuple[Expansion, str], ...] = (
    # Signs and spaces
    ("–", "ndash, en dash"),
    (" – ", "snd, snds, spnd, sndash, spaced ndash, spaced en dash, spndash, dash"),
    ("—", "mdash, em dash, mdashb"),
    (" — ", "spaced mdash, spaced em dash"),
    ("'", "', apos"),
    ("'s", "'s"),
    ("' \"", "' \""),
    ("\" '", "\" '"),
    ("\"'", "\"'"),
    ("'\"", "'\""),
    ('"', '-"'),
    (" ", "nbsp, space, spaces, thinsp, thin space, hair space, hairsp, gap, indent"),
    (" · ", "·, dot, middot, bullet, •, bull, sep"),
    ("<br>", "br, break, crlf, nbr"),
    ("\n\n", "pb, parabr, paragraph break, paragraph"),
    ("|", "!, pipe"),
    ("=", "=, equals"),
    ("×", "times"),
    ("−", "minus, −"),
    ("…", "ellipsis, ..."),
    ("ʻ", "okina"),
    ("ʾ", "hamza"),
    ("ʿ", "ayin"),
    ("†", "dagger, extinct"),
    ("&", "&"),
    ("π", "pi"),
    ("CO2", "co2"),
    ("H2O", "h2o"),
    # Text in another form
    (0, "nowrap, nobr, nobreak, nowraplinks, j, small, smaller, big, bigger, large, larger, huge, center, midsize"),
    (0, "nobold, noitalic, normal, em, strong, bold, italic, italics, smallcaps, sc, smallcaps all, underline"),
    (0, "abbr, abbrv, tooltip, abbrlink, vanchor, visible anchor, linktext, longitem, proper name, not a typo"),
    (0, "kbd, code, codett, tt, mono, samp, var, mvar, math, sub, unicode, nastaliq, script/arabic, script/hebrew"),
    (0, "ipa, pinyin, ill, interlanguage link, illm, lang-rus, nihongo2, vr, railgauge, track gauge, oldstyledate"),
    (0, "plainlist, plain list, flatlist, flat list, citation needed span, cnspan, clarify span, bibleverse, vol."),
    (1, "lang, wikt-lang, wt, rtl-lang, sort, fontcolor, font color, script"),
    (-1, "transl, transliteration, resize, font, fontsize, color, colour"),
    (_before("^"), "sup, e"),
    (_enclosed("⟨", "⟩"), "angbr, angle bracket, grapheme, angbr ipa"),
    (_enclosed("[", "]"), "bracket, ipablink"),
    (_enclosed("/", "/"), "ipaslink"),
    (_enclosed("‘", "’"), "gloss"),
    (_enclosed("lit. ‘", "’"), "lit, literally, literal translation"),
    (_joined(""), "sic"),
    (_joined(" "), "sortname"),
    (_nihongo, "nihongo, nihongo4, nihongo krt"),
    (_nihongo3, "nihongo3"),
    (_chinese, "zh, lang-zh"),
    (lambda a: a.first_of("hangul") or a.at(0), "korean, ko-hhrm"),
    (_marriage, "marriage"),
    # Numbers, measures, dates
    (_convert, "convert, cvt"),
    (_value, "val"),
    (_fraction, "frac, fraction, sfrac"),
    (_joined(""), "chem, chem2, che"),
    (_nuclide, "nuclide, nuclide2, simplenuclide"),
    (lambda a: _grouped(a.at(0)), "format price, formatprice, formatnum, nts, number, gaps"),
    (_years("c."), "circa, c., ca., ca"),
    (_years("fl."), "floruit, fl."),
    (_years("r."), "reign, r."),
    (_date, "date, start date, end date, start date and age, film date, dts, birth date, birth date and age, bda"),
    (_date, "death date, death date and age, birth-date, birth-date and age, death-date, death-date and age"),
    (_as_of, "as of"),
    (_before("US$"), "us$, usd"),
    (_before("A$"), "a$, aud"),
    (_before("C$"), "c$, cad, can$"),
    (_before("£"), "gbp, £, pound sterling"),
    (_before("€"), "eur, euro, €"),
    (_before("₹"), "inr, indian rupee"),
    (_before("¥"), "jpy, yen, ¥"),
    (_before("₩"), "krw, won"),
    (lambda a: f"{a.first_of('code')} {a.at(0)}".strip(), "currency"),
    (_music, "music"),
    # Names and their links
    *(
        (_prefixed_ship(name.upper()), name)
        for name in ("uss", "hms", "hmcs", "hmas", "ss", "rms", "sms", "mv", "usns")
    ),
    (lambda a: _ship(a.at(0), Arguments(a.positional[1:], a.named)), "ship"),
    (_flag, "flag, flagu, flagcountry"),
    # Blocks of prose and lists
    (_block, "quote, blockquote, block quote, cquote, quotation, bquote, centered pull quote, poemquote, poem quote"),
    (_equation, "numblk, equation box 1"),
    (_class_of, "lbb"),
    (_block, "verse translation, pre, pre2, block indent"),
    (_joined(", "), "hlist, comma separated entries, cslist"),
    (_items, "ubl, ublist, unbulleted list, vunblist, bulleted list, blist, ulist, ordered list, olist, numbered list"),
    (_columns, "columns"),
    (lambda a: f"\n; {a.at(0)}\n", "term"),
    (lambda a: f"\n: {a.at(0) or a.first_of('defn')}\n", "defn"),
)

KEPT: dict[str, Expansion] = {name: expansion for expansion, names in _TABLE for name in names.split(", ")}
"""Templates by their name in lower case."""
