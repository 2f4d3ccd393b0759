"""Tests of the search box: parsing, writing, and messages about invalid input."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobqueue.admin.search import qualifiers, query
from jobqueue.admin.search.combine import both
from jobqueue.admin.search.query import BadQuery, parse, spelled
from jobqueue.admin.search.tokens import Token, plain, scalar, words, written_scalar
from jobqueue.clock import SYSTEM
from jobqueue.policy.redaction import is_secret_name, redact_text
from jobqueue.records import LONGEST_SOUGHT, Filter, Range, is_place
from jobqueue.states import JobStatus
from jobqueue.testing.contract.harness import put

# Reading


def of(*values):
    return frozenset(values)


READ = {
    "": Filter(),
    "  \t ": Filter(),
    "type:resize_image": Filter(types=of("resize_image")),
    "type:a,b TYPE:b,c": Filter(types=of("b")),
    'type:"a,b",c': Filter(types=of("a,b", "c")),
    "status:dead_letter": Filter(statuses=of(JobStatus.DEAD_LETTER)),
    "status:Dead-Letter,failed": Filter(statuses=of(JobStatus.DEAD_LETTER, JobStatus.FAILED)),
    "queue:images,mail": Filter(queues=of("images", "mail")),
    "tenant:acme": Filter(tenant="acme"),
    "tenant:a,b": Filter(tenant="a,b"),
    'tenant:""': Filter(tenant=""),
    'tenant:"the \\"big\\" one"': Filter(tenant='the "big" one'),
    "error:timeout": Filter(error="timeout"),
    'error:"timed out, again"': Filter(error="timed out, again"),
    "error:time error:timeout": Filter(error="timeout"),
    "id:01J8ZQ4Y,other": Filter(ids=of("01J8ZQ4Y", "other")),
    "id:01J8*": Filter(id_prefix="01J8"),
    'id:"01J8*"': Filter(ids=of("01J8*")),
    "key:order:7": Filter(idempotency_key="order:7"),
    "parent:01J8": Filter(parent_id="01J8"),
    "worker:host:4711:0c9d": Filter(lease_owner="host:4711:0c9d"),
    "fingerprint:3f2a": Filter(fingerprint="3f2a"),
    "fingerprint:none": Filter(fingerprint=""),
    'fingerprint:"none"': Filter(fingerprint="none"),
    "after:2026-01-31T12:00Z": Filter(created_after=datetime(2026, 1, 31, 12, tzinfo=UTC)),
    "before:2026-01-31": Filter(created_before=datetime(2026, 1, 30, 23, tzinfo=UTC)),
    "before:2026-07-01T00:00:00+02:00": Filter(created_before=datetime(2026, 6, 30, 22, tzinfo=UTC)),
    "after:9999-12-31": Filter(created_after=datetime(9998, 12, 30, 22, 59, 59, 999_999, tzinfo=UTC)),
    "before:9999-12-31T23:59:59Z": Filter(created_before=datetime(9998, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
    "after:0001-01-01T00:00Z": Filter(created_after=datetime(2, 1, 1, tzinfo=UTC)),
    "before:0001-01-01": Filter(created_before=datetime(2, 1, 1, 23, 6, 32, tzinfo=UTC)),
    "class:TimeoutError": Filter(error_class="TimeoutError"),
    "class:time class:timeout error:x": Filter(error="x", error_class="timeout"),
    "status:cancelled": Filter(statuses=of(JobStatus.FAILED), end_reasons=of("cancelled")),
    "status:Canceled": Filter(statuses=of(JobStatus.FAILED), end_reasons=of("cancelled")),
    "status:expired status:failed": Filter(statuses=of(JobStatus.FAILED), end_reasons=of("expired")),
    'reason:"timed out",crashed': Filter(end_reasons=of("timed out", "crashed")),
    "ended:2026-01-31T12:00Z": Filter(ended_after=datetime(2026, 1, 31, 12, tzinfo=UTC)),
    "ended:..2026-01-31T12:00Z": Filter(ended_before=datetime(2026, 1, 31, 12, tzinfo=UTC)),
    "died:2026-01-30T12:00Z..2026-01-31T12:00Z": Filter(
        statuses=of(JobStatus.DEAD_LETTER),
        ended_after=datetime(2026, 1, 30, 12, tzinfo=UTC),
        ended_before=datetime(2026, 1, 31, 12, tzinfo=UTC),
    ),
    "priority:1": Filter(priority=Range(1, 1)),
    "priority:2..4 priority:<4": Filter(priority=Range(2, 3)),
    "attempts:>1": Filter(attempts=Range(2)),
    "attempts:>=1": Filter(attempts=Range(1)),
    "attempts:..3": Filter(attempts=Range(0, 3)),
    "attempts:3.. attempts:<=5": Filter(attempts=Range(3, 5)),
    "-type:a,b": Filter(excluded=(Filter(types=of("a", "b")),)),
    "-TYPE:a type:b -queue:mail -type:a": Filter(
        types=of("b"), excluded=(Filter(types=of("a")), Filter(queues=of("mail")))
    ),
    "-status:cancelled": Filter(excluded=(Filter(statuses=of(JobStatus.FAILED), end_reasons=of("cancelled")),)),
    "payload.image_id:7": Filter(payload=(("image_id", 7),)),
    'payload.image_id:"7"': Filter(payload=(("image_id", "7"),)),
    "payload.a.0.b:-1.5 payload.c:true": Filter(payload=(("a.0.b", -1.5), ("c", True))),
    "payload.x:null payload.x:null": Filter(payload=(("x", None),)),
    "payload.x:1 payload.x:true": Filter(payload=(("x", 1), ("x", True))),
    'payload."first name":"Ada L."': Filter(payload=(("first name", "Ada L."),)),
    "payload.zip:007": Filter(payload=(("zip", "007"),)),
    "payload.url:https://a.b/c?d": Filter(payload=(("url", "https://a.b/c?d"),)),
    "payload.n:" + "9" * 40: Filter(payload=(("n", "9" * 40),)),
    "payload.n:1e999": Filter(payload=(("n", "1e999"),)),
    "payload.a__contains:x": Filter(payload=(("a__contains", "x"),)),
    "type:resize_image status:dead_letter error:timeout payload.image_id:7 tenant:acme": Filter(
        types=of("resize_image"),
        statuses=of(JobStatus.DEAD_LETTER),
        error="timeout",
        payload=(("image_id", 7),),
        tenant="acme",
    ),
}


def same(one, other):
    return one == other and repr(one.payload) == repr(other.payload)  # by what is written, for True equals 1


@pytest.mark.parametrize("text", READ)
def test_what_is_typed_is_read(text):
    assert same(parse(text), READ[text])


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("after:90s", timedelta(seconds=90)),
        ("after:15m", timedelta(minutes=15)),
        ("after:2H", timedelta(hours=2)),
        ("after:3d", timedelta(days=3)),
        ("before:1w", timedelta(weeks=1)),
    ],
)
def test_a_moment_is_how_long_ago_it_was(text, length):
    found = parse(text)
    moment = found.created_after or found.created_before
    assert timedelta(0) <= SYSTEM.now() - length - moment < timedelta(seconds=10)


def test_of_several_moments_the_narrowest_holds():
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    text = " ".join(f"{name}:{one.isoformat()}" for name in ("after", "before") for one in (early, late))
    assert parse(text) == Filter(created_after=late, created_before=early)


# Not reading

REFUSED = {
    "statsu:failed": "There is no “statsu:”. Did you mean “status:”?",
    "Tpye:x": "There is no “Tpye:”. Did you mean “type:”?",
    "zzz:1": "There is no “zzz:”. Possible names are type:, status:, queue:, error:, payload:, ",
    "type.x:1": "There is no “type.x:”.",
    "status:dead": "There is no status “dead”. Possible are queued, in_progress, completed, failed, dead_letter.",
    "-error:x": "“-error” isn't possible: the jobs that it leaves out would reveal hidden values.",
    "-payload.x:1": "“-payload” isn't possible",
    "-statsu:failed": "There is no “-statsu:”.",
    "-type:": "“-type:” needs a value",
    "class:a class:b": "Only one “class:” is possible",
    "class:" + "x" * 300: "“class:” takes at most 200 characters",
    "status:cancelled,failed": "“cancelled” can't be combined with other statuses.",
    "ended:..": "“..” is not a time",
    "died:2h..soon": "“soon” is not a time",
    "priority:high": "“high” is neither a number nor a range. Write 3, 1..3, >3 or <3.",
    "priority:3..1": "is neither a number nor a range",
    "attempts:..": "is neither a number nor a range",
    "attempts:<0": "is neither a number nor a range",
    "attempts:>999999999": "is neither a number nor a range",
    "attempts:1..99999999999": "is neither a number nor a range",
    "priority:1 priority:>1": "No job is both “priority:1” and “priority:2..”.",
    "type:": "“type:” needs a value, as in “type:resize_image”.",
    "type:a,,b": "“type:” needs a value",
    'error:""': '“error:” needs a value, as in “error:"timed out"”.',
    "payload:7": "“payload” needs a path, as in “payload.image_id:7”.",
    "payload.:7": "“payload” needs a path",
    "payload.a..b:7": "“payload” needs a path",
    "payload.a:": "“payload.a:” needs a value",
    'payload."a\\"b":7': "A path can't contain quotes or backslashes.",
    "payload." + ".".join("abcdefghijklmnop") + ":1": "is too deep",
    "payload.0.0.0.0:1": "is too deep",
    "after:yesterday": "“yesterday” is not a time. "
    "Write how long ago it was, such as 15m, 2h or 3d, or a date: 2026-01-31.",
    "after:99999999w": "is not a time",
    "after:9999-12-31T23:59:59-12:00": "is not a time",
    "after:" + "9" * 500: "is not a time",
    'type:"a': "A closing quotation mark is missing.",
    '"': "A closing quotation mark is missing.",
    "id:a*,b*": "“id:” takes complete ids, or the beginning of one",
    "id:*": "“id:” takes complete ids",
    "status:queued status:failed": "No job is both “status:queued” and “status:failed”.",
    "tenant:a tenant:b": "No job is both “tenant:a” and “tenant:b”.",
    "id:a* id:b*": "No job is both “id:a*” and “id:b*”.",
    "error:timeout error:refused": "Only one “error:” is possible",
    "type:\0": "The search contains a character that cannot occur in a job.",
    "\ud800": "The search contains a character that cannot occur in a job.",
    "type:" + "x" * 10_000_000: "Use at most 2000 characters.",
    "type:x " * 100: "Use at most 30 words.",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: ascii(text)[:30])
def test_what_cannot_be_read_is_refused_with_a_sentence(text, queue):
    with pytest.raises(BadQuery) as refused:
        parse(text)
    assert REFUSED[text] in str(refused.value)
    assert len(str(refused.value)) < 2_500


@pytest.mark.parametrize(
    "text",
    [
        "payload.password:hunter2",
        "payload.user.api_key:x",
        "payload.a.client_secret.b:x",
        "payload.password:null",
        "payload.url:amqp://ada:pw@mq/",
        "payload.note:ghp_0123456789abcdefghij0123",
        "error:password=hunter2",
        'error:"Bearer abcdefghij"',
    ],
)
def test_what_looks_like_a_secret_cannot_be_searched_for(text):
    with pytest.raises(BadQuery, match=r"looks like a secret\. Secrets can't be searched for"):
        parse(text)


# There and back

plain_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
some_text = plain_text | st.sampled_from(
    [
        "a b",
        'a"b',
        "a\\",
        "*",
        "a*",
        "a,b",
        "a:b",
        "none",
        "true",
        "7",
        "-0",
        "1e5",
        " ",
        "ä",
        "null",
        '"',
        "\u2028",
        "",
    ]
)
names = st.frozensets(some_text, max_size=3)
maybe = st.none() | some_text
moments = st.none() | st.datetimes(timezones=st.just(UTC)).filter(lambda moment: 1 < moment.year < 9999)
scalars = (
    some_text
    | st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
)
elements = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters='\0."\\'), min_size=1, max_size=8
) | st.sampled_from(["0", "12", "a:b", "a b", "a,b", "value", "__contains"])


def is_open(pair):
    """Whether it may be asked for."""
    path, value = pair
    secret = any(map(is_secret_name, path.split(".")))
    few = sum(map(is_place, path.split("."))) <= qualifiers.MOST_PLACES
    return few and not secret and not (isinstance(value, str) and redact_text(value) != value)


pairs = st.tuples(st.lists(elements, min_size=1, max_size=4).map(".".join), scalars).filter(is_open)
ranges = st.none() | st.lists(st.integers(0, 10**9), min_size=2, max_size=2).map(lambda ends: Range(*sorted(ends)))
excluded = (
    names.filter(bool).map(lambda found: Filter(types=found))
    | st.sampled_from(JobStatus).map(lambda status: Filter(statuses=of(status)))
    | some_text.map(lambda text: Filter(tenant=text))
    | moments.filter(bool).map(lambda moment: Filter(statuses=of(JobStatus.DEAD_LETTER), ended_before=moment))
    | st.just(Filter(statuses=of(JobStatus.FAILED), end_reasons=of("cancelled")))
    | ranges.filter(bool).map(lambda found: Filter(attempts=found))
)
filters = st.builds(
    Filter,
    ids=names,
    statuses=st.frozensets(st.sampled_from(JobStatus)),
    types=names,
    queues=names,
    tenant=maybe,
    error=some_text.filter(lambda text: redact_text(text) == text and len(text) <= LONGEST_SOUGHT),
    created_after=moments,
    created_before=moments,
    id_prefix=some_text,
    idempotency_key=maybe,
    parent_id=maybe,
    lease_owner=maybe,
    fingerprint=maybe,
    payload=st.lists(pairs, max_size=3, unique_by=repr).map(tuple),
    error_class=some_text.filter(lambda text: len(text) <= LONGEST_SOUGHT),
    end_reasons=names,
    ended_after=moments,
    ended_before=moments,
    priority=ranges,
    attempts=ranges,
    excluded=st.lists(excluded, max_size=2, unique=True).map(tuple),
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(filters)
def test_a_filter_is_spelled_as_it_would_be_typed(wanted):
    text = spelled(wanted)
    if len(text) <= query.LONGEST:
        assert same(parse(text), wanted)


@given(scalars)
def test_a_value_is_one_word_and_comes_back_with_its_type(value):
    text = written_scalar(value)
    assert words(f"x{text}") == [f"x{text}"]
    assert repr(scalar(plain(text))) == repr(value)


def test_what_json_would_not_write_so_is_text():
    for text in ("007", "+7", ".5", "5.", "1_000", "0x10", "NaN", "Infinity", "True", "None", "١٢"):
        assert parse(f"payload.x:{text}").payload == (("x", text),)
    assert scalar(Token("7", quoted=True)) == "7"


@given(filters, filters)
def test_two_filters_are_one_that_lets_through_no_more_than_either(one, other):
    try:
        narrow = both(one, other)
    except BadQuery:
        return
    for field in ("ids", "statuses", "types", "queues", "end_reasons"):
        for side in (getattr(one, field), getattr(other, field)):
            assert not side or (getattr(narrow, field) and getattr(narrow, field) <= side)
    assert {*one.excluded, *other.excluded} == set(narrow.excluded)
    assert {*map(repr, one.payload), *map(repr, other.payload)} == set(map(repr, narrow.payload))
    assert both(narrow, narrow) == narrow


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(
            [
                "type",
                "payload",
                "status",
                "id",
                "after",
                "error",
                ".",
                ":",
                ":",
                ",",
                '"',
                "\\",
                "*",
                " ",
                " ",
                "x",
                "7",
            ]
        )
        | plain_text,
        max_size=12,
    ).map("".join)
)
def test_anything_typed_is_read_or_refused_in_words(queue, text):
    said = ""
    try:
        found = queue.jobs.count(parse(text), 1)
    except BadQuery as refused:
        found, said = None, str(refused)
    assert found in (0, 1) or said


# A word without a name


def test_a_word_of_its_own_is_an_id_a_key_a_beginning_a_type_or_a_tenant_whatever_there_is_first(queue):
    job_id = put(queue, "rare", idempotency_key="rarer", tenant="rarest")
    assert parse(job_id) == Filter(ids=of(job_id))
    assert parse(job_id.lower()) == Filter(id_prefix=job_id)
    assert parse("rarer") == Filter(idempotency_key="rarer")
    assert parse(job_id[:8].lower()) == Filter(id_prefix=job_id[:8])
    assert parse(job_id[:3]) == Filter(tenant=job_id[:3])
    assert parse("rare") == Filter(types=of("rare"))
    assert parse("resize_image") == Filter(types=of("resize_image"))
    assert parse("rarest") == parse("tenant:rarest")
    assert parse("rare rarest") == Filter(types=of("rare"), tenant="rarest")


def misread(job_id):
    """Spell an id as people copy it from paper."""
    return job_id.lower().replace("1", "l").replace("0", "o")


@pytest.mark.parametrize("spelling", [str.lower, str.title, misread])
def test_an_id_is_found_in_small_letters_and_with_letters_for_digits(queue, spelling):
    job_id = put(queue, "rare")
    child = put(queue, "rare", parent_id=job_id)
    assert parse(f"id:{spelling(job_id)}") == Filter(ids=of(job_id))
    assert parse(f"id:{spelling(job_id)},{child}") == Filter(ids=of(job_id, child))
    assert parse(f"id:{spelling(job_id[:9])}*") == Filter(id_prefix=job_id[:9])
    assert parse(f"parent:{spelling(job_id)}") == Filter(parent_id=job_id)
    assert parse(spelling(job_id)) == Filter(id_prefix=job_id)


def test_an_id_of_another_program_stays_as_it_was_typed(queue):
    foreign = "01hzx5k9w8q7r6t5y4e3d2c1b0"
    assert parse(f"id:{foreign}") == Filter(ids=of(foreign.upper()))
    assert parse(f'id:"{foreign}"') == Filter(ids=of(foreign))
    put(queue, id=foreign, parent_id=foreign)
    assert parse(f"id:{foreign}") == Filter(ids=of(foreign))
    assert parse(f"id:{foreign[:5]}*") == Filter(id_prefix=foreign[:5])
    assert parse(f"parent:{foreign}") == Filter(parent_id=foreign)
    assert parse("id:4f2a-17,other") == Filter(ids=of("4f2a-17", "other"))


def test_a_colon_in_an_id_or_a_key_needs_no_quotes(queue):
    put(queue, id="import:7/a_b", idempotency_key="type:7")
    assert parse("import:7/a_b") == Filter(ids=of("import:7/a_b"))
    assert parse('"import:7/a_b"') == Filter(ids=of("import:7/a_b"))
    assert parse('"type:7"') == Filter(idempotency_key="type:7")
    with pytest.raises(BadQuery):
        parse("import:8")
