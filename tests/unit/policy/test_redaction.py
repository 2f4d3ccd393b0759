"""Tests of redaction: recognised secrets, the remaining text, and the time it takes."""

from __future__ import annotations

import json
import time
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobqueue.policy.redaction import REDACTED, hides, is_secret_name, redact_data, redact_text, secret_values

SECRET_NAMES = [
    "password", "Password", "db_password", "dbpassword", "PASSWD", "passphrase", "clientSecret", "client-secret",
    "token", "accessToken", "refresh_token", "csrfmiddlewaretoken", "api_key", "apiKey", "API-KEY", "apikey",
    "Authorization", "cookie", "Set-Cookie", "private_key", "privateKeyPem", "credentials", "AWS_SECRET_ACCESS_KEY",
    "access_key", "secret_key", "SECRET_KEY_BASE", "token2", "auth", "password_hash", "id_token", "signing_key",
]  # fmt: skip
OPEN_NAMES = [
    "private_key_ref", "token_id", "tokenId", "token_count", "tokenCount", "token_type", "access_key_id", "cookie_name",
    "password_changed_at", "secret_arn", "password_file", "author", "authorized", "secretary", "tokenizer", "user",
    "key", "idempotency_key", "unique_key", "public_key", "passenger", "", "_", "12", "monkey",
]  # fmt: skip

#: No value that says nothing (none, null), and none that is part of the mark itself.
secrets = st.text("ABCDEFGHJKMNPQRSTUVWXYZ0123456789", min_size=6, max_size=40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)

SHAPES = {
    "assigned": "password={}",
    "spaced": "connection refused, password = '{}' for user",
    "json": '{{"a": 1, "token": "{}", "b": 2}}',
    "json within json": '{{"body": "{{\\"token\\": \\"{}\\"}}"}}',
    "repr": "{{'user': 'ada', 'api_key': '{}'}}",
    "bytes": "{{'api_key': b'{}'}}",
    "header": "GET / HTTP/1.1\nAuthorization: Bearer {}\nHost: example.org",
    "basic header": "Authorization: Basic {}==",
    "bearer": "the server refused Bearer {}00",
    "cookies": "Cookie: theme=dark; sid={}",
    "url": "cannot reach postgres://ada:{}@db.example.org/shop",
    "url with an at": "redis://:p@{}@cache:6379",
    "query": "GET https://example.org/?user=7&access_token={}&page=2",
    "flag": "pg_dump --password {} shop",
    "flag in a list": "['tool', '--api-key', '{}', 'x']",
    "arrow": "secret => {}",
    "key block": "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
    "cut key block": "-----BEGIN PRIVATE KEY-----\n{}",
    "aws": "AKIA{:0<16.16}",
    "github": "ghp_{:0<36}",
    "stripe": "sk_live_{:0<24}",
    "slack": "xoxb-123456789-{}",
    "slack hook": "https://hooks.slack.com/services/T000/B000/{}",
    "web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI3In0.{}",
    "made for nothing": "ApiKey('x', client_secret='{}')",
}


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_name_that_says_secret_is_one(name):
    assert is_secret_name(name)
    assert redact_data({name: "hunter2"}) == {name: REDACTED}
    assert secret_values({name: "hunter2"}) == ("hunter2",)


@pytest.mark.parametrize("name", OPEN_NAMES)
def test_a_name_that_refers_counts_or_resembles_is_none(name):
    assert not is_secret_name(name)
    assert redact_data({name: "hunter2"}) == {name: "hunter2"}
    assert secret_values({name: "hunter2"}) == ()


def test_what_tells_nothing_stays():
    data = {"password": None, "has_token": True, "max_tokens": 1024, "token": False}
    assert redact_data(data) == data


def test_numbers_and_whole_containers_go_too():
    assert redact_data({"password": 1234, "credentials": {"user": "ada"}, "tokens": ["a"]}) == {
        "password": REDACTED,
        "credentials": REDACTED,
        "tokens": REDACTED,
    }


def test_named_values_and_arguments_of_a_command_are_seen():
    data = {"env": [{"name": "API_KEY", "value": "abcd"}], "args": ["--user", "ada", "--password", "hunter2"]}
    assert redact_data(data) == {
        "env": [{"name": "API_KEY", "value": REDACTED}],
        "args": ["--user", "ada", "--password", REDACTED],
    }
    assert set(secret_values(data)) == {"abcd", "hunter2"}


def test_text_within_data_loses_what_has_the_shape_of_a_secret():
    assert redact_data({"url": "amqp://ada:pw12@mq/"}) == {"url": f"amqp://ada:{REDACTED}@mq/"}


def test_data_keeps_its_order_and_is_not_changed():
    data = {"b": [1, {"token": "hunter2", "a": 2}], "a": "x"}
    assert json.dumps(redact_data(data)) == json.dumps({"b": [1, {"token": REDACTED, "a": 2}], "a": "x"})
    assert data["b"][1]["token"] == "hunter2"


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@given(secret=secrets)
def test_a_secret_of_a_known_shape_does_not_survive(shape, secret):
    text = shape.format(secret)
    shown = redact_text(text)
    assert secret not in shown
    assert REDACTED in shown
    assert redact_text(shown) == shown


def test_what_stands_around_a_secret_stays():
    assert redact_text('{"a": 1, "token": "x\\"y", "b": 2}') == f'{{"a": 1, "token": "{REDACTED}", "b": 2}}'
    assert redact_text("f(user=7, password='a b', n=2)") == f"f(user=7, password='{REDACTED}', n=2)"
    assert redact_text("?token=abc&page=2") == f"?token={REDACTED}&page=2"
    assert redact_text("https://ada:pw@h/x and https://h/y") == f"https://ada:{REDACTED}@h/x and https://h/y"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ValueError: invalid literal for int() with base 10: 'x'",
        "token_id=5 token_count: 7 max_tokens=100",
        "Foo(token=None, password=None, has_secret=True)",
        "basic authentication failed",
        "password too short",
        "https://example.org/a:b/c@d",
        "KeyError: 'key'",
        "passengers=3; author=ada",
    ],
)
def test_an_innocent_text_stays_as_it_is(text):
    assert redact_text(text) == text


@given(
    secret=st.text(min_size=4, max_size=30).filter(lambda one: one not in REDACTED), before=st.text(), after=st.text()
)
def test_a_given_secret_does_not_survive_as_it_is_or_escaped(secret, before, after):
    for spelling in (secret, json.dumps(secret), repr(secret)):
        shown = redact_text(f"{before} {spelling} {after}", [secret])
        assert secret not in shown.replace(REDACTED, "\0") or set(secret) & set("[]\0")


def test_given_secrets_that_contain_each_other_all_go():
    shown = redact_text("abcd abcdef redacted", ["abcd", "abcdef", "acte"])
    assert shown == f"{REDACTED} {REDACTED} red{REDACTED}d"


def test_short_secrets_would_hide_half_the_text():
    assert redact_text("a cat sat", ["a", "cat"]) == "a cat sat"
    assert secret_values({"password": "cat"}) == ()


@given(json_values)
def test_any_data_goes_through(value):
    once = redact_data(value)
    assert redact_data(once) == once
    json.dumps(once)


@given(value=json_values, secret=secrets)
def test_no_secret_survives_at_any_depth(value, secret):
    data = [value, {"deep": [{"password": secret, "inner": value}]}]
    assert secret not in json.dumps(redact_data(data[1:]))[: json.dumps(redact_data(data[1:])).index('"inner"')]
    assert secret in secret_values(data)


telling_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["x", "--token", "password=abcdef", "Bearer abcdefgh"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "value", "token", "API_KEY", "max_tokens", "0", "x"]), inner)
        | inner.map(lambda value: {"name": "API_KEY", "value": value})
    ),
    max_leaves=12,
)


def places(value, path=()):
    """Every path in a value, with what stands there."""
    yield path, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, str(key)))


@given(telling_values)
def test_what_is_hidden_at_a_path_is_what_redaction_leaves_out(value):
    left = dict(places(redact_data(value)))
    for path, found in places(value):
        if not isinstance(found, (dict, list)):
            assert hides(value, path) == (path not in left or left[path] != found), path
    assert not hides(value, ("nothing", "there"))


@given(st.text())
def test_any_text_goes_through_and_twice_is_once(text):
    assert redact_text(redact_text(text)) == redact_text(text)


@given(
    st.lists(
        st.sampled_from(["password", "token", "=", ":", '"', "'", "\\", " ", "\n", "://", "@", "--", "a", "Bearer"])
    )
)
@example(["://", "password", "://", "\\", "@"])  # what is left of one secret has the shape of another one
def test_pieces_of_secrets_in_any_order_go_through(pieces):
    text = "".join(pieces)
    assert redact_text(redact_text(text)) == redact_text(text)


def test_nesting_has_no_limit():
    deep = {"password": "hunter2"}
    for _ in range(50_000):
        deep = [deep]
    shown = redact_data(deep)
    for _ in range(50_000):
        (shown,) = shown
    assert shown == {"password": REDACTED}
    assert secret_values(deep) == ("hunter2",)


@pytest.mark.parametrize(
    "piece",
    [
        "password=", 'password="', 'password="\\"', "password=\\", 'password=\\"\\', "password=\\'a\\b", "eyJ",
        "eyJaaaaaaaa.", "-----BEGIN PRIVATE KEY-----", "://a:", "--a ", "A", "key", "api", "Bearer ", "Basic a",
        "cookie: ", "sk-", "SG.aaaaaaaaaaaaaaaaaaaa", "\\", "token", "token ", "x@", "a\n", quote("password="),
    ],
)  # fmt: skip
def test_a_text_twenty_times_as_long_takes_about_twenty_times_as_long(piece):
    def seconds(length):
        text = (piece * (length // len(piece) + 1))[:length]
        begun = time.process_time()
        redact_text(text)
        return time.process_time() - begun

    # Quadratic time would be 400 times as much, and 20 seconds for the longest of these texts.
    assert min(seconds(400_000) for _ in range(2)) < 60 * max(min(seconds(20_000) for _ in range(3)), 0.005)
