"""Tests of the templates of links to other systems."""

from __future__ import annotations

import pytest

from jobqueue.policy.link_template import FIELDS, filled, obstacle


@pytest.mark.parametrize(
    "template", ["https://logs.example.com/?job={id}", "http://10.0.0.1:3000/{type}/{queue}", "https://a/{{x}}/{id}"]
)
def test_a_template_of_known_fields_is_taken(template):
    assert obstacle(template) == ""


@pytest.mark.parametrize(
    "template",
    [
        *("", "logs", "//logs/{id}", "ftp://logs/{id}", "javascript:alert(1)//{id}", "https:///{id}"),
        *("https://{tenant}.example.com/", "https://logs/{nothing}", "https://logs/{id!r}", "https://logs/{id:>9}"),
        *(
            "https://logs/{id.__class__}",
            "https://logs/{0}",
            "https://logs/{}",
            "https://logs/{id",
            "https://[::1/{id}",
        ),
        *("https://logs/ {id}", "https://logs/\n{id}", 7, None, ["https://logs/"]),
    ],
)
def test_anything_else_is_refused(template):
    assert obstacle(template)


def test_values_are_quoted_and_a_missing_one_leaves_out_the_link():
    values = dict.fromkeys(FIELDS, "") | {"id": "a/b?c=&d#e é\ud800", "type": "{id}"}
    assert (
        filled("https://logs/?j={id}&t={type}", values) == "https://logs/?j=a%2Fb%3Fc%3D%26d%23e%20%C3%A9%3F&t=%7Bid%7D"
    )
    assert filled("https://logs/{tenant}", values) == ""
    assert filled("https://logs/{{}}", values) == "https://logs/{}"
