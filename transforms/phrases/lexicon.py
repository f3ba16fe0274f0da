"""Closed classes of English words, and the Penn tags that decide where a word has several classes.

Each list says what a word is unless its tag says otherwise: "can" is a modal, but not where it is tagged NN. Where a
parser gives no tags (or others), the lists alone decide. Words are in their normalised form (`normalise_token`).
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ARTICLES = _words("a an")
DETERMINERS = _words("a an the this that these those whose")

PRONOUNS = _words(
    """
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
    herself it its itself they them their theirs themselves themself one's oneself thou thee thy thine thyself ye
    who whom whose which what whoever whomever whichever whatever whosoever
    this that these those each other one another there 'em 's
    """
)
"""Personal, possessive, reflexive, reciprocal, relative, demonstrative and existential.

A phrase of these words only is left out: "it", "each other", "he/she".
"""

NUMBER_WORDS = _words(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion trillion
    hundreds thousands millions billions
    """
)

VAGUE_NUMBERS = _words("few half many several")

CLITICS = _words("'s 're 've 'll 'd 'm n't")
"""Parts of a word that stand at its end: no phrase begins with one."""

POSSESSIVES = _words("'s")

QUANTIFIERS = _words(
    """
    all any both each either every few fewer fewest half least less little many more most much neither no none other
    others own same several some such enough plenty
    anybody anyone anything everybody everyone everything nobody nothing somebody someone something
    one ones former latter last next else various certain so-called
    """
)
"""Function words whatever their tag is, as pronouns are: GUM's and the WSJ's tags of them differ."""

AUXILIARIES = _words(
    """
    to be am is are was were been being 's 're 'm ai have has had having 've 'd do does did done doing
    can could may might must shall should will would 'll ought ca wo sha cannot
    art wast wert hast hath hadst dost doth didst canst couldst mayst shalt shouldst wilt wouldst mustn't
    """
)

HAVE = _words("have has had having 've 'd hast hath hadst")
DO = _words("do does did done doing dost doth didst")

ADVERBS = _words(
    """
    about above abroad across after afterwards again ago ahead all-round almost alone along already also altogether
    always apart around as aside at away back before behind below beneath besides between beyond by down elsewhere
    especially even ever everywhere far farther further furthermore forth forward forwards backward backwards hardly
    hence here hereby hereafter herein hither hitherto how however indeed in inside instead just later longer
    likewise long maybe meanwhile merely moreover near nearby nearly never nevertheless nonetheless not
    notwithstanding now nowhere n't off often oft on once only onward onwards otherwise out outside over perhaps
    quite rather round scarcely barely since so somehow sometime sometimes somewhat somewhere soon sooner still
    straight than then thence thereafter thereby therefore therein thereof thereupon thither though thus through
    throughout till together too under underneath until up upon upward upwards very well when whence whenever where
    whereas whereby wherefore wherein whereupon wherever whether whither why with within without worse yet yonder
    anyhow anyway anywhere because although unless while if and but or nor for of from into onto during toward
    towards against among amongst amid per via despite except like unlike oh ah yes nay ay aye o alas etc etc. e.g.
    i.e. ca. c. circa cf. viz.
    absolutely accordingly actually additionally afterward apparently basically certainly chiefly commonly completely
    consequently currently entirely essentially eventually evidently exactly extremely fairly finally forever formerly
    frequently fully generally greatly indubitably initially largely lately literally mainly mostly namely normally
    obviously occasionally ordinarily originally particularly partly possibly practically presently presumably
    previously primarily probably purely rarely really recently respectively seldom shortly similarly simply solely
    specifically subsequently supposedly surely thrice totally truly twice typically ultimately undoubtedly usually
    utterly virtually wholly
    """
)
"""Prepositions, particles, conjunctions, interjections, and adverbs of place, time, degree, frequency and stance.

Adverbs of manner are no function words: "gravely", "suddenly".
"""

MONTHS = _words(
    """
    january february march april may june july august september october november december
    jan jan. feb feb. mar mar. apr apr. jun jun. jul jul. aug aug. sep sep. sept sept. oct oct. nov nov. dec dec.
    """
)
DATE_WORDS = MONTHS | _words(
    """
    monday tuesday wednesday thursday friday saturday sunday mon. tue. wed. thu. fri. sat. sun.
    century centuries bc bce ad ce b.c. a.d. a.m. p.m. am pm o'clock gmt utc
    """
)

UNITS = _words(
    """
    moment moments fortnight fortnights second seconds minute minutes hour hours day days week weeks month months
    year years decade decades sec min hr hrs metre metres meter meters kilometre kilometres kilometer kilometers
    centimetre centimetres millimetre millimetres inch inches foot feet yard yards mile miles league leagues fathom
    fathoms rod rods acre acres hectare hectares gram grams kilogram kilograms tonne tonnes ton tons ounce ounces
    pound pounds litre litres liter liters gallon gallons mm cm m km km2 km² m2 m² mg g kg lb lbs oz ft mi sq ha hz
    khz mhz ghz kw mw gw kj kcal mph kph °c °f c f k v w j degree degrees percent per cent dollar dollars cents
    shilling shillings pence penny euro euros usd gbp bit bits byte bytes kb mb gb times time square cubic
    """
)
"""What is measured in; with a number and no other word of meaning, a measure: "5 km", "about three years"."""

ORDINALS = _words(
    """
    first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
    sixteenth seventeenth eighteenth nineteenth twentieth
    """
)

# Tags of the Penn Treebank
NAME_TAGS = frozenset(("NNP", "NNPS"))
NOUN_TAGS = frozenset(("NN", "NNS")) | NAME_TAGS
ADJECTIVE_TAGS = frozenset(("JJ", "JJR", "JJS"))
ADVERB_TAGS = frozenset(("RB", "RBR", "RBS"))
VERB_TAGS = frozenset(("VB", "VBD", "VBG", "VBN", "VBP", "VBZ"))
FUNCTION_TAGS = frozenset(
    ("CC", "DT", "EX", "IN", "MD", "PDT", "POS", "PRP", "PRP$", "RP", "TO", "WDT", "WP", "WP$", "WRB")
)
MODAL_TAGS = frozenset(("MD", "TO"))
AFTER_HAVE = frozenset(("VBN", "VBD", "TO"))
AFTER_DO = frozenset(("VB", "VBP"))
"""The tags of a verb that an auxiliary "have" and "do" leads."""

HEAD_TAGS = {
    "NP": NOUN_TAGS,
    "VP": VERB_TAGS,
    "PP": frozenset(("IN", "TO")),
    "ADJP": ADJECTIVE_TAGS,
    "ADVP": ADVERB_TAGS,
}
"""The tags of the word that can be the head of a constituent; of VP without auxiliaries and modals."""
