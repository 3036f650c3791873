"""Identities of benchmarks: a name, a version and, where it matters, a hash of the content."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered.data.identity import BenchmarkIdentity

IDENTITY_OF_TEXT = {
    "newsvendor@1": BenchmarkIdentity("newsvendor", 1),
    "mine@12+0123456789ab": BenchmarkIdentity("mine", 12, "0123456789ab"),
    "a+b@2+c0": BenchmarkIdentity("a+b", 2, "c0"),
    "mine@1+once-0a1b": BenchmarkIdentity("mine", 1, "once-0a1b"),
    "me@home@3": BenchmarkIdentity("me@home", 3),
}
NAMES_ALONE = ["newsvendor", "a+b", "me@home", "folder@01", "mine@2+rest", ""]


@pytest.mark.parametrize(("text", "identity"), IDENTITY_OF_TEXT.items())
def test_text_is_parsed(text, identity):
    assert BenchmarkIdentity.parse(text) == identity


@pytest.mark.parametrize("text", NAMES_ALONE)
def test_other_text_is_a_name(text):
    assert BenchmarkIdentity.parse(text) == BenchmarkIdentity(text, version=None)


@given(st.text() | st.sampled_from([*IDENTITY_OF_TEXT, *NAMES_ALONE]))
def test_text_round_trips(text):
    assert str(BenchmarkIdentity.parse(text)) == text


def test_id_leaves_out_the_content():
    assert BenchmarkIdentity("mine", 2, content="c0").id == "mine@2"
