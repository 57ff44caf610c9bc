"""What is a secret, and what exactly is taken out."""

import base64

import pytest

from fieldstone.redact import shared_harness
from fieldstone.redact.patterns import HIDDEN_SECRETS, MARKER_RULE, PART_OF_TOKEN, WHOLE_ADDRESS, Patterns
from fieldstone.redact.plausible import JUDGES
from tests.redact.fakes import ALNUM, HEX, TOKENS, noise, private_key
from tests.requirements import requirement

# Where a token stands in what agents write: bare, in prose of any language, in configuration, markdown and queries.
SURROUNDINGS = (
    *("{}", "the key is {} and it works", "use {}, then go on", "It is {}.", "Is it {}?", "({})", "[{}]", "<{}>"),
    *("x={}", '{{"k": "{}"}}', "`{}`", "**{}**", "a|{}|b", "https://example.com/?t={}&x=1", "トークンは{}です", "“{}”"),
)


@requirement("redact:patterns:tokens")
@pytest.mark.parametrize("kind", TOKENS)
def test_a_token_is_found_by_its_shape_wherever_it_stands_and_nothing_else_is_touched(kind: str) -> None:
    for surrounding in SURROUNDINGS:
        redacted = shared_harness().clean_one(surrounding.format(TOKENS[kind]))
        [rule] = redacted.found
        # The dot that ends an unsigned JWT may also end the sentence.
        expected = surrounding.format(f"[REDACTED:{rule}]")
        assert redacted.text.rstrip(".") == expected.rstrip("."), surrounding


@requirement("redact:patterns:passwords")
@pytest.mark.parametrize(
    ("before", "secret", "after"),
    [
        ("the password is ", "hunter2!", ""),
        ("The password for the staging database is ", "Zx81-kite", ". Ask Bob."),
        ("passwd: ", "Tr0ub4dor&3", ""),
        ("pwd=", "S3cret!x", " and more"),
        ("DB_PASSWORD=", "correct-horse9", "\nDB_USER=me"),
        ('{"password": "', "hunter2!", '", "user": "bob"}'),
        ("password='", "abc def 123 ghi", "'"),
        ("set the admin password to ", "Winter2024!", ""),
        ('changed my password to "', "P@ssword", '"'),
        ("Server=db;User Id=sa;Password=", "My$ecret1", ";Encrypt=true"),
        ("/login?user=x&pass=", "abc12345", "&next=1"),
        ("Passwort ist ", "Hund1234", ""),
        ("Mot de passe : ", "Lapin2024!", ""),
        ("password → ", "hünter2", " ✓"),
        ("password: ", "12345678", ""),
        ("password: ", "$ecret1!", ""),
        ("the api key is ", noise(32, HEX), ""),
        ("my API key: ", noise(16) + "7", ", thanks"),
        ("The secret is ", "kite42-Zebra", "."),
        ("client_secret = ", noise(24) + "3", ""),
        ("aws_secret_access_key = ", noise(39) + "8", ""),
    ],
)
def test_a_secret_that_is_called_one_is_taken_out_and_only_it(before: str, secret: str, after: str) -> None:
    redacted = shared_harness().clean_one(before + secret + after)
    [rule] = redacted.found
    assert redacted.text == f"{before}[REDACTED:{rule}]{after}"


@requirement("redact:patterns:headers")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Authorization: Bearer ", ""),
        ('curl -H "Authorization: Bearer ', '" https://example.com'),
        ("authorization: Basic ", ""),
        ("it sent bearer ", ", which works"),
        ("X-Api-Key: ", "\nAccept: */*"),
    ],
)
def test_credentials_in_a_header_are_taken_out(before: str, after: str) -> None:
    redacted = shared_harness().clean_one(before + noise(20) + "9" + after)
    [rule] = redacted.found
    assert redacted.text == f"{before}[REDACTED:{rule}]{after}"


@requirement("redact:patterns:url-password")
@pytest.mark.parametrize("scheme", ["https", "postgres", "mongodb+srv", "redis", "amqp", "s3+custom"])
@pytest.mark.parametrize("password", ["letmein", "aaaa", "p%40ss", "p@ss:word", "日本9", "$ecret1", "%24x"])
def test_of_a_url_only_the_password_is_taken_out(scheme: str, password: str) -> None:
    redacted = shared_harness().clean_one(f"see {scheme}://alice:{password}@db.example.com:5432/x?y=1 there")
    [rule] = redacted.found
    assert redacted.text == f"see {scheme}://alice:[REDACTED:{rule}]@db.example.com:5432/x?y=1 there"


@requirement("redact:patterns:private-key")
@pytest.mark.parametrize("label", ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
@pytest.mark.parametrize("lines", [1, 20, 400])
def test_a_private_key_of_any_size_is_taken_out_whole(label: str, lines: int) -> None:
    redacted = shared_harness().clean_one(f"before {private_key(label, lines)} after")
    assert redacted.text in {f"before [REDACTED:{rule}] after" for rule in redacted.found}


@requirement("redact:patterns:private-key")
def test_a_private_key_in_one_line_of_json_and_one_that_was_cut_off_leave_nothing_of_the_key() -> None:
    key = private_key()
    for text in (key.replace("\n", "\\n"), key.replace("\n", "\n> "), key[:700], key[:300] + "\n" + key):
        redacted = shared_harness().clean_one(text)
        assert redacted.found
        assert not [
            line for line in key.splitlines()[1:-1] if line[:16] in redacted.text or line[-16:] in redacted.text
        ]


@requirement("redact:patterns:whole-token")
def test_of_a_token_that_the_catalogue_takes_in_part_nothing_is_left() -> None:
    encoded = base64.b64encode(f"ey{'JhbGciOi'}{noise(60)}.ey{'J'}{noise(90)}.{noise(43)}".encode()).decode()
    wrapped = "\n".join(encoded[at : at + 76] for at in range(0, len(encoded), 76))
    uuids = "-".join([noise(8, HEX), noise(4, HEX), noise(4, HEX), noise(4, HEX), noise(12, HEX)])
    webhook = f"https://corp.webhook.office.com/webhookb2/{uuids}@{uuids}/IncomingWebhook/{noise(32, HEX)}/{uuids}"
    for token in (encoded, wrapped, webhook):
        redacted = shared_harness().clean_one(f"before {token} after")
        assert redacted.text in {f"before [REDACTED:{rule}] after" for rule in redacted.found}


@requirement("redact:patterns:hidden-secrets")
def test_a_secret_that_the_catalogue_hides_as_a_helper_is_taken_out_too() -> None:
    key_id, secret = TOKENS["AWS access key"], noise(39) + "8"
    redacted = shared_harness().clean_one(f"aws_access_key_id = {key_id}\naws_secret_access_key = {secret}\n")
    assert key_id not in redacted.text
    assert secret not in redacted.text


@requirement("redact:patterns:openwop-canary")
@pytest.mark.parametrize("shape", ["{}", "sk-{}", "sk-ant-{}", "AIza{}", "eyJ{0}.eyJ{0}.{0}", "cred_{}", "x.{}/y"])
def test_the_canary_of_openwop_is_taken_out_in_every_shape(shape: str) -> None:
    canary = "CANARY-openwop" + "-CONFORMANCE-NEVER-SECRET"
    redacted = shared_harness().clean_one(f"before {shape.format(canary)} after")
    assert redacted.text in {f"before [REDACTED:{rule}] after" for rule in redacted.found}


@requirement("redact:patterns:no-switch")
def test_a_comment_that_tells_scanners_to_look_away_changes_nothing() -> None:
    redacted = shared_harness().clean_one(
        f"{TOKENS['GitHub personal']} # gitleaks:allow kingfisher:ignore betterleaks:allow"
    )
    assert TOKENS["GitHub personal"] not in redacted.text


@requirement("redact:patterns:zero-bytes")
def test_zero_bytes_in_a_text_move_nothing() -> None:
    token = TOKENS["GitHub personal"]
    redacted = shared_harness().clean_one("\0a\0b" * 40 + f" {token} " + "c\0" * 40)
    [rule] = redacted.found
    assert redacted.text == "\0a\0b" * 40 + f" [REDACTED:{rule}] " + "c\0" * 40


@requirement("redact:patterns:own-rules")
def test_every_rule_that_the_code_names_is_there() -> None:
    assert set(JUDGES) | HIDDEN_SECRETS | PART_OF_TOKEN | {MARKER_RULE, WHOLE_ADDRESS} <= Patterns().rule_ids


PROSE = (
    "the password policy requires 12 characters",
    "password reset flow v2.1 is live",
    "a password manager is used",
    "the password is required, and the password is wonderful!",
    "The password is stored in 1Password",
    "the password was changed on 2024-01-02, the next password: 2025-01-02",
    "password is sha256-hashed; password hashing is argon2id with 3 passes",
    "the password is 256-bit, password: 90days, password is at least 8 characters",
    "passwords are salted. pass: test_login_v2, pass=12 fail=3",
    "mail bob@example.com about the password: carol@example.com",
    "the secret is in vault/prod/db-1 and the secret: kv/prod/db-1",
    "access key: production-cluster-eu-west-1, session token: expired",
    "the access token is refreshed every 3600s, the api key is rotated every 90days",
    "bearer authentication is used with OAuth2, bearer token-based-authentication-v2",
    "secret santa is at 18:30",
    "sk-learn-compatible-estimators-v2 pipeline",
    "the file starts with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----",
    "Das Passwort muss 8 Zeichen haben; le mot de passe est obligatoire; la contraseña es necesaria",
)
CODE = (
    'password = os.environ["DB_PASS1"]',
    "password=settings.db_password2, password=get_secret(db1), password=auth[1])",
    "password: ${DB_PASSWORD_1} and password: {{ vault_db_pass1 }} and password=%(pass1)s",
    "Password: ******** and password: <your-password-1>",
    '"password": "must be 8+ characters long!", "password": "string"',
    'def f(password: str = "", token: Optional[str] = None) -> None:',
    "password varchar(255), password field: varchar(255)",
    "pwd=/srv/user1/project2; pwd is ~/src/v2",
    "max_tokens=4096 token count: 12345 token=next_page_2",
    "primary key: user_id_1234, cache key: user:1234:profile",
    "Authorization: Bearer <token>",
)
NAMES = (
    "550e8400-e29b-41d4-a716-446655440000",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "commit da39a3ee5e6b4b0d3255bfef95601890afd80709 fixes token: see PR #1234",
    "https://example.com:8080/path?x=1&y=2@z",
    "https://github.com/org/repo/blob/da39a3ee5e6b4b0d3255bfef95601890afd80709/a.py#L10-L20",
    "git@github.com:org/repo.git and ssh://git@github.com:22/org/repo",
    "postgres://user:${PGPASS}@host/db and postgres://user:****@host/db and postgres://u:$PASS_1@h/d",
    "arn:aws:iam::123456789012:role/x, run:42, unit:01HZX9KQ3YQ4",
    "client_id = 550e8400-e29b-41d4-a716-446655440000",
)


@requirement("redact:patterns:no-false-alarm")
@pytest.mark.parametrize("text", [*PROSE, *CODE, *NAMES])
def test_prose_code_ids_and_addresses_stay_as_they_are(text: str) -> None:
    assert shared_harness().clean_one(text) == (text, ())


@requirement("redact:patterns:no-false-alarm")
def test_hashes_and_encoded_data_without_a_name_stay_as_they_are() -> None:
    for length in (8, 16, 20, 24, 32, 40, 64, 128):
        for alphabet in (HEX, ALNUM, ALNUM + "+/"):
            text = f"digest {noise(length, alphabet)} of the file"
            assert shared_harness().clean_one(text) == (text, ())


@pytest.mark.parametrize("surrounding", SURROUNDINGS)
def test_one_of_our_own_keys_is_found_wherever_it_stands(surrounding: str) -> None:
    key = "fsk" + f"_{noise(16, HEX)}_{noise(43, ALNUM + '_-')}"
    redacted = shared_harness().clean_one(surrounding.format(key))
    assert redacted == (surrounding.format("[REDACTED:fieldstone.own-key]"), ("fieldstone.own-key",))
