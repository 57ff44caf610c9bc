"""What words mean to each other: same, opposite, or two of a kind that exclude each other.

Written by hand from general knowledge, for the English that agents and people write. A line of SYNONYMS begins with
    the
word that stands for the rest. In ANTONYMS each word left of the bar opposes each word right of it. The members of a
    group
exclude each other where one thing can have only one of them; a slash joins names of the same member.
Words are looked up by stem, so one form of each is enough. Words of several parts are joined by an underscore.
"""

from collections.abc import Iterator
from typing import Final

from fieldstone.detection.stems import stem
from fieldstone.detection.tables import listed, words

SYNONYMS: Final = """
small little tiny petite mini miniature compact
big large huge enormous gigantic massive giant immense
near close_to next_to beside adjacent_to nearby
quick fast rapid speedy swift quickly rapidly
slow sluggish slowly
happy pleased glad cheerful joyful delighted
sad unhappy miserable sorrowful gloomy depressed
start begin commence
end finish conclude
finished completed done
buy purchase
allow permit
forbid prohibit disallow
need require
broken defective faulty
fix repair
error failure
correct right accurate
wrong incorrect inaccurate
child kid youngster
man guy gentleman
woman lady
mother mom mum
father dad
doctor physician
sick ill
scared afraid frightened
smart clever intelligent
angry mad
rich wealthy
beautiful pretty
old elderly aged senior
many lots numerous several lots_of a_lot_of
talk speak chat
shout yell scream
jump leap hop
look watch observe
picture photo photograph image
street road
car automobile
bike bicycle
couch sofa
forest woods
rock stone
cap hat
pants trousers
use utilize utilise employ
help assist
choose select pick
answer reply respond
delete remove erase
create make build
get obtain receive
send transmit
change modify alter
update upgrade
show display present
keep retain
hold contain
store save
happen occur take_place
contract agreement
customer client
employee worker staff
bug defect
important significant
main primary principal
config configuration
db database
repo repository
auth authentication
app application
docs documentation
env environment
prod production
postgresql postgres
kubernetes k8s
javascript js
typescript ts
mongodb mongo
golang go_lang
colour color
favourite favorite
grey gray
cellphone phone mobile
tv television
film movie
usa america united_states
uk britain united_kingdom
forty fourty
maximum max
minimum min
"""

ANTONYMS: Final = """
open | closed shut
enabled enable | disabled disable
on | off
up | down
start begin started | stop end finish stopped ended finished
succeed success successful pass passed | fail failed failure unsuccessful
increase rise grow grew rose gain | decrease fall drop shrink decline fell dropped shrank reduce lose
raise raised | lower lowered cut
accept accepted approve approved | reject rejected refuse refused decline declined deny denied
allow allowed permit | forbid forbidden prohibit deny block blocked ban banned
include included | exclude excluded omit
public | private secret internal
synchronous sync | asynchronous async
hot warm | cold cool
fast quick rapid | slow
big large huge tall | small little tiny short
long | short
high | low
tall | short
wide broad | narrow
thick | thin
heavy | light
dark | light bright pale
deep | shallow
full | empty
rich | poor
expensive costly | cheap inexpensive free
strong | weak
hard | soft easy
difficult hard | easy simple
simple | complex complicated
good great excellent | bad poor terrible
better best | worse worst
right correct true valid | wrong incorrect false invalid
true | false
safe secure | dangerous unsafe insecure vulnerable
clean | dirty
dry | wet
new fresh | old stale
young | old
early | late
before | after
first | last
inside indoors indoor | outside outdoors outdoor
in_front_of | behind
near | far far_from far_away_from far_away
above over on_top_of | below under beneath underneath
top | bottom
left | right
front | back rear
north | south
east | west
forward | backward
arrive arrived | leave depart left departed
win won | lose lost
love like enjoy adore | hate dislike loathe detest
happy | sad angry
laugh smile | cry frown
alive | dead
awake | asleep
present | absent missing
same identical | different
similar | different
many most | few
more | less fewer
online | offline
connected | disconnected
locked | unlocked
required mandatory obligatory compulsory | optional
temporary | permanent
static | dynamic
optimistic | pessimistic
eager | lazy
strict | lenient
stateful | stateless
sequential serial | parallel concurrent
centralized centralised | decentralized decentralised distributed
inbound incoming | outbound outgoing
sparse | dense
formal | informal casual
brief concise | detailed verbose lengthy
beginner novice | expert
introvert introverted | extrovert extroverted
spicy | mild
sweet | sour bitter salty
raw | cooked
serious | funny
polite | rude
calm | nervous
cheerful | gloomy
generous | stingy
honest | dishonest
stable | unstable flaky
up_to_date | out_of_date outdated stale
manual manually | automatic automatically automated
local | remote
active | inactive idle dormant
visible shown | hidden invisible
encrypted | plaintext unencrypted
mutable | immutable
available | unavailable
able | unable
healthy | unhealthy degraded
guilty | innocent
married | single divorced
read_only readonly | writable read_write
ascending | descending
vertical vertically | horizontal horizontally
odd | even
positive | negative
upgrade upgraded | downgrade downgraded
agree agreed | disagree disagreed refuse refused
remember remembered | forget forgot forgotten
keep kept | drop discard
support | oppose
employed | unemployed
crowded busy | deserted empty
loud noisy | quiet silent
day daytime | night nighttime
sunny | rainy cloudy
man | woman
boy | girl
male | female
husband | wife
brother | sister
son | daughter
father | mother
king | queen
uncle | aunt
adult grownup | child
friend | enemy stranger
"""

# A group's name is the word above its members: "an instrument" and "a violin" do not exclude each other.
GROUPS: Final = {
    "colour": """red blue green yellow orange purple pink brown black white grey beige violet turquoise maroon navy
        crimson teal gold silver tan magenta cyan""",
    "nationality": """american english/british/scottish/welsh french german spanish italian portuguese dutch
        belgian swiss austrian
        swedish norwegian danish finnish polish czech hungarian romanian bulgarian greek turkish russian ukrainian
        irish chinese japanese korean/south_korean north_korean vietnamese thai indonesian
        malaysian filipino indian pakistani bangladeshi nepalese iranian iraqi israeli egyptian moroccan nigerian
        kenyan ethiopian south_african mexican brazilian argentinian/argentine chilean peruvian colombian
        venezuelan cuban canadian australian icelandic croatian serbian saudi lebanese syrian afghan mongolian
        cambodian burmese singaporean taiwanese jamaican ghanaian algerian tunisian""",
    "country": """usa uk/england/scotland/wales france germany spain italy portugal netherlands/holland
        belgium switzerland austria
        sweden norway denmark finland poland hungary romania bulgaria greece turkey russia ukraine ireland
        china japan korea/south_korea north_korea vietnam thailand indonesia malaysia philippines
        india pakistan bangladesh nepal iran iraq israel egypt morocco nigeria kenya ethiopia south_africa mexico
        brazil argentina chile peru colombia venezuela cuba canada australia new_zealand iceland croatia serbia
        saudi_arabia lebanon syria afghanistan mongolia cambodia singapore taiwan jamaica ghana algeria tunisia
        czechia/czech_republic estonia latvia lithuania slovakia slovenia luxembourg qatar uzbekistan kazakhstan
        sri_lanka myanmar/burma laos""",
    "city": """london paris berlin madrid rome lisbon amsterdam brussels vienna zurich geneva munich frankfurt
        hamburg dublin stockholm oslo copenhagen helsinki warsaw prague budapest athens istanbul moscow kyiv tokyo
        osaka seoul beijing shanghai singapore hong_kong bangkok jakarta manila mumbai delhi bangalore dubai cairo
        nairobi lagos johannesburg sydney melbourne auckland toronto montreal vancouver new_york chicago boston
        seattle austin dallas denver miami atlanta los_angeles san_francisco san_diego portland philadelphia
        houston barcelona porto milan mexico_city""",
    "continent": "europe asia africa north_america south_america antarctica",
    "planet": "mercury venus earth mars jupiter saturn uranus neptune pluto",
    "room": """kitchen bedroom bathroom/restroom/washroom living_room dining_room garage basement/cellar attic
        hallway classroom bedroom laundry_room waiting_room conference_room meeting_room common_room locker_room
        gym office balcony garden pantry nursery library lobby courtyard ballroom lounge courtroom prison_cell
        studio porch terrace closet elevator""",
    "place": """beach forest desert mountain city supermarket church school hospital airport museum restaurant
        stadium theater/theatre farm zoo""",
    "drink": """water milk coffee tea beer wine champagne cider vodka whisky/whiskey gin rum tequila brandy juice
        lemonade soda/cola cocoa sake smoothie""",
    "fruit": """apple banana orange pear grape cherry strawberry blueberry raspberry mango pineapple melon
        watermelon peach plum kiwi""",
    "vegetable": """carrot potato tomato onion cucumber lettuce cabbage broccoli cauliflower spinach pumpkin celery
        zucchini/courgette eggplant/aubergine radish garlic avocado asparagus beet turnip leek mushroom""",
    "instrument": """piano violin guitar drum flute trumpet saxophone/sax clarinet cello harp banjo harmonica
        accordion tuba trombone ukulele organ viola oboe bassoon tambourine mandolin xylophone bagpipe
        acoustic_guitar electric_guitar""",
    "material": """wood/wooden metal/metallic plastic glass stone brick concrete/cement leather paper cardboard
        bronze steel iron copper aluminium/aluminum marble clay rubber cotton wool silk velvet denim linen nylon
        porcelain ceramic sand straw""",
    "sport": """football/soccer basketball baseball tennis golf hockey volleyball cricket rugby badminton swimming
        skiing snowboarding surfing boxing wrestling karate judo skateboarding cycling chess""",
    "animal": """dog cat horse cow pig sheep goat chicken duck rabbit mouse elephant lion tiger bear monkey fish
        snake turtle frog parrot camel donkey wolf fox deer squirrel""",
    "posture": "sit stand lie kneel crouch sleep run walk jump swim fly dance climb crawl ride drive",
    "activity": "sleep/nap run swim cook dance read paint climb ski surf drive shop wrestle fish",
    "meal": "breakfast lunch dinner/supper brunch",
    "season": "spring summer autumn/fall winter",
    "weather": "sunny rainy snowy cloudy foggy stormy",
    "profession": """teacher doctor nurse lawyer engineer chef/cook waiter pilot farmer plumber electrician
        carpenter accountant dentist firefighter policeman soldier architect journalist mechanic""",
    "vehicle": "car truck bus train motorcycle bike boat plane/airplane helicopter tram scooter van ship",
    "garment": "shirt coat jacket dress skirt pants sweater suit hoodie vest shorts jeans",
    "database": """postgresql mysql mariadb sqlite oracle sql_server/mssql mongodb cassandra dynamodb redis
        cockroachdb duckdb snowflake bigquery elasticsearch couchdb neo4j clickhouse firestore""",
    "programming_language": """python java javascript typescript golang/go rust ruby php kotlin swift scala perl
        haskell elixir erlang clojure c++/cpp c# fortran cobol lua dart elm zig julia""",
    "framework": """react angular vue svelte django flask fastapi rails spring express laravel nextjs/next.js nuxt
        ember flutter react_native""",
    "cloud": "aws azure gcp/google_cloud heroku digitalocean hetzner cloudflare vercel netlify linode",
    "broker": "kafka rabbitmq nats sqs pulsar activemq redis pubsub kinesis",
    "server_software": "nginx apache caddy haproxy traefik envoy iis",
    "operating_system": "linux windows macos ubuntu debian fedora centos alpine ios android freebsd",
    "browser": "chrome firefox safari edge opera",
    "format": "json xml yaml toml csv parquet avro protobuf html markdown pdf ini",
    "protocol_name": "http https grpc rest graphql soap websocket mqtt tcp udp ftp sftp ssh",
    "version_control": "git mercurial subversion/svn perforce",
    "ci": "jenkins github_actions gitlab_ci circleci travis teamcity buildkite",
    "environment": "production staging development/dev testing sandbox",
    "severity": "critical high medium low minor major trivial",
    "log_level": "debug info warning/warn error fatal trace",
    "currency": "euro/eur dollar/usd pound/gbp yen/jpy franc/chf rupee/inr yuan/cny krona",
    "licence": "mit apache gpl lgpl bsd mpl agpl proprietary",
    "encryption": "rsa aes ed25519 des sha-1 sha-256 md5 bcrypt argon2 scrypt",
    "cadence": "hourly daily weekly fortnightly/biweekly monthly quarterly yearly/annually/annual",
    "direction": "left right straight",
    "language": """english french german spanish italian portuguese dutch russian chinese/mandarin japanese korean
        arabic hindi polish turkish swedish""",
    "status": "pending running finished cancelled/canceled failed blocked",
    "diet": "vegetarian vegan pescatarian omnivore",
    "marital_status": "single married divorced widowed engaged",
}

# What is more general than members of the groups, besides the group's own name.
GENERAL: Final = words("""person people animal pet food thing something someone somebody room building place vehicle
    clothes clothing drink beverage fruit vegetable instrument material colour city country language
    database db tool system service framework library format sport furniture fabric cloud broker server
    browser machine device location area""")
# Members of a group that hold others of it: Ubuntu is Linux.
BROADER: Final = {
    "metal": "steel iron bronze copper aluminium",
    "wine": "champagne",
    "juice": "lemonade smoothie",
    "stone": "marble brick concrete",
    "guitar": "acoustic_guitar electric_guitar",
    "linux": "ubuntu debian fedora centos alpine android",
    "http": "https rest grpc graphql soap websocket",
    "tcp": "http https ssh ftp grpc",
    "english": "american",
}

# People and animals of captions: who "the man" or "a dog" is, only the scene says, so two scenes alike are one scene.
SCENE_FIGURES: Final = frozenset(
    stem(word)
    for word in listed("""man men woman women boy girl child children kid person people lady guy couple dog cat baby
        toddler male female crowd teenager someone gentleman musician player runner swimmer cyclist dancer singer
        worker tourist puppy horse bird adult friend family mother father group player surfer skateboarder student
        band chef bride groom biker soldier farmer athlete individual""")
) | frozenset(map(stem, listed(GROUPS["profession"].replace("/", " "))))


def _lines(table: str) -> Iterator[list[str]]:
    for line in table.strip().splitlines():
        yield line.split()


def _canonical_words() -> dict[str, str]:
    canonical: dict[str, str] = {}
    for first, *others in _lines(SYNONYMS):
        head = canonical.setdefault(stem(first), stem(first))
        for other in others:
            canonical.setdefault(stem(other), head)
    return canonical


CANONICAL: Final = _canonical_words()


def meaning(word: str) -> str:
    """The stem that stands for the word and its synonyms."""
    stemmed = stem(word)
    return CANONICAL.get(stemmed, stemmed)


def _antonym_pairs() -> frozenset[tuple[str, str]]:
    """By stem, not by meaning: "dark" opposes "light" as a colour, and not all that is not heavy."""
    pairs: set[tuple[str, str]] = set()
    for line in ANTONYMS.strip().splitlines():
        left, right = ([stem(word) for word in side.split()] for side in line.split("|"))
        pairs.update((one, other) for one in left for other in right if one != other)
    return frozenset(pairs | {(other, one) for one, other in pairs})


OPPOSITES: Final = _antonym_pairs()


def _memberships() -> dict[str, dict[str, int]]:
    """Word → group → which member of it."""
    found: dict[str, dict[str, int]] = {}
    for group, members in GROUPS.items():
        for number, names in enumerate(members.split()):
            for name in names.split("/"):
                found.setdefault(meaning(name), {})[group] = number
    return found


MEMBERS: Final = _memberships()


def _phrases() -> dict[str, tuple[tuple[str, ...], ...]]:
    """First word → the words of several parts that begin with it, the longest first."""
    tables = [SYNONYMS, ANTONYMS.replace("|", " "), " ".join(GROUPS.values()).replace("/", " ")]
    joined = {tuple(word.split("_")) for table in tables for word in table.split() if "_" in word}
    found: dict[str, list[tuple[str, ...]]] = {}
    for parts in sorted(joined, key=lambda parts: (-len(parts), parts)):
        found.setdefault(parts[0], []).append(parts)
    return {first: tuple(phrases) for first, phrases in found.items()}


PHRASES: Final = _phrases()

HOLDS: Final = frozenset((meaning(broad), meaning(name)) for broad, names in BROADER.items() for name in listed(names))
