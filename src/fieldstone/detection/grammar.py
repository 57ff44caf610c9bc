"""Words that carry a statement's build: what can be dropped, what turns it round, what says where its verb is."""

from typing import Final

from fieldstone.detection.stems import stem
from fieldstone.detection.tables import words


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, words(text)))


COPULAS: Final = words("is are was were be been being am remains remain stays stay becomes become")
HAVE: Final = words("has have had having")
AUXILIARIES: Final = words("do does did will would shall should must can could may might ought")
PAST_AUXILIARIES: Final = words("was were did had")
ARTICLES: Final = words("a an the this that these those")
INDEFINITE: Final = words("a an some another one there")
PRONOUNS: Final = words("it he she they him her them his hers their its this that these those")
FIRST_PERSON: Final = words("i me my mine myself")
# Who or when they mean depends on who speaks, and when.
INDEXICAL: Final = FIRST_PERSON | words("you your yours yourself")
DEICTIC: Final = words("today yesterday tomorrow tonight recently lately ago")

PREPOSITIONS: Final = words("""in on at of for with to from by about into onto through during within under over
    across against between among around along via per since until till beyond toward towards upon as than like
    unless if when while because where whether though although except despite every""")
# Prepositions that oppose each other: they are compared as words are.
TELLING_PREPOSITIONS: Final = words("before after inside outside above below behind near")
# They say for what, where or when a statement holds: with another one it is another statement.
SCOPES: Final = words(
    """in on at of for during within under over across when while if unless until till except with between among
    where after before via by from to every against"""
)

# Words without weight of their own: they neither tell the subject nor oppose anything.
DROPPED: Final = (
    COPULAS
    | HAVE
    | AUXILIARIES
    | ARTICLES
    | FIRST_PERSON
    | PRONOUNS
    | words("""we us our ours you your yours and or but so then also too very really quite rather just still now
        currently already yet there here which who whom whose what how why please actually only even well oh hey
        yeah wow ok okay both each own such other more most some any again ever indeed simply basically definitely
        certainly clearly finally probably likely got get going gonna lets let one ones ve ll d m s t re according
        officially explicitly out least approximately roughly nearly almost""")
)
# A verb that only says that something takes place.
LIGHT_VERBS: Final = _stems("happen occur exist seem appear")
# They add emphasis: without them a statement says the same.
LIGHT_WORDS: Final = LIGHT_VERBS | _stems(
    """always all every everyone everybody everything anymore usually generally typically new more most today
    correctly current latest entire whole total exactly full fully completely entirely whatsoever anybody anyone
    anything"""
)
# Where they stand before a noun they say which one is meant, not how it is.
TELLING_APART: Final = _stems(
    """old new left right first last top bottom front back public private internal external local remote primary
    secondary read write upper lower inner outer early late big small large long short high low left north south
    east west"""
)

NEGATORS: Final = words("not no never nobody none nothing neither nor without nowhere non")
POSSIBLE: Final = words("may might could maybe perhaps possibly sometimes occasionally potentially often rarely")
PAST_STATE: Final = words("previously formerly originally initially once")
BESIDE: Final = words("also too additionally another both either besides")
PLANNED: Final = words("will would should shall must ought plan plans planned want wants going")

# "step 3", "ticket 12": the number says which one, wherever it stands.
NUMBERED: Final = _stems(
    """step item observation chapter section page ticket issue task sprint iteration run test case entry note line
    phase part episode round batch build pr attempt sample row message question figure table appendix experiment
    trial request id number no exhibit lesson unit module lecture record log event user order invoice host node
    server room worker job commit shard replica partition week day game level"""
)

# One thing has only one of what follows these: what it is stored in, led by, set to, called, due on.
FUNCTIONAL_VERBS: Final = _stems(
    """use run live work land locate store host deploy base write build back power own lead manage assign name call set
    default equal cost expire schedule start begin end finish launch open close founded establish born prefer
    choose return listen reside belong cause due implement serve own depart arrive weigh measure last happen
    occur release plan publish die kick resume reopen retire ship introduce hash encrypt sign compress keep save
    put"""
)
# They have an object before the place: "stores sessions in Redis".
PLACING_VERBS: Final = _stems("store keep host deploy save put locate")
# Of these, any other word is another value: "named main", "named trunk".
NAMING_VERBS: Final = _stems("name call set default equal title label")
# "the owner is", "the default branch is": there is one.
FUNCTIONAL_NOUNS: Final = _stems(
    """default owner name title lead leader manager capital primary main root cause status language framework
    format database port host region timezone limit budget deadline version favourite favorite colour color
    author maintainer assignee password username priority severity headquarters address birthday mascot theme
    ceo cto president licence license currency backend provider vendor protocol branch mode type kind size"""
)

# Verbs by which a subject is told from what is said of it. A noun that looks like one needs a verb's ending.
VERBS: Final = (
    _stems(
        """accept add affect agree allow answer apply approve arrive ask assign back become begin belong block
        break bring build buy call cause change check choose close collect come compile connect contain convert
        cost cover crash create cross decide decrease default delete deliver deny depend deploy describe discuss
        do drink drive drop eat emit enable disable encrypt end enjoy enter exclude expect expire explain export
        fail fall feel finish fit fix follow forbid forget founded generate get give go grow handle happen hate
        have help hold host ignore implement import improve include increase install keep know lack last launch
        lead learn leave like listen live load lock log look lose love make manage mean measure meet merge miss
        move need occur offer omit open own pass pay plan play power prefer prevent process produce prohibit
        provide publish pull push raise read receive reject release remain remove rename render replace report
        require reside resolve restart retry return review rise roll run save say schedule see seem sell send
        serve set ship show shut sit sleep speak spend stand start stay stop store succeed suggest support
        switch take talk tell test think throw trigger try turn update upgrade upload use validate visit
        wait walk want wear weigh win work write seat broke reset sync take took restart process ran rewrite
        reduce raise retire drain scale persist sort parse cache depart refuse respond watch wash paint sing
        hold climb cook swim dance jump ride"""
    )
    | LIGHT_VERBS
)
PAST_FORMS: Final = words("""ran took went came got gave made built bought sold sent kept lost won found held wrote
    chose broke spoke ate drank drove rode rose grew fell knew saw said told thought brought began met paid led
    slept sat stood wore forgot swam flew became felt spent left sang""")
