"""What to cite for methods and benchmarks, as BibTeX."""

import re
from importlib.resources import files

import pytest

from hpobench_ordered import load
from hpobench_ordered.benchmarks.registry import benchmark_spec, list_benchmarks
from hpobench_ordered.data.citations import (
    THIS_PACKAGE,
    find_references,
    format_bibtex,
    read_references,
)
from hpobench_ordered.methods.registry import list_methods, method_spec

YEAR = re.compile(r"\b(?:19|20)\d\d\b")
KEY = re.compile(r"@\w+\{(\w+),")


def read_sources_of_methods():
    """The text on the source of each method, by name."""
    return {name: method_spec(name).source for name in list_methods()}


def read_sources_of_benchmarks():
    """The texts on the sources of each benchmark, joined, by name."""
    sources = {}
    for name in list_benchmarks():
        provenance = benchmark_spec(name).define().provenance
        sources[name] = f"{provenance.paper}; {provenance.source}"
    return sources


def find_keys(bibtex):
    """The keys of BibTeX entries, in their order."""
    return KEY.findall(bibtex)


@pytest.fixture(scope="module")
def sources():
    """All texts on sources, of methods and benchmarks, by name."""
    return read_sources_of_methods() | read_sources_of_benchmarks()


def test_every_method_cites_a_work():
    for name, source in read_sources_of_methods().items():
        assert find_references(source), name
        assert len(find_keys(method_spec(name).bibtex)) >= 2, name  # the last one is the package's


def test_every_benchmark_gives_an_entry():
    """Benchmarks that no paper defines are this package's."""
    for name in list_benchmarks():
        provenance = benchmark_spec(name).define().provenance
        n_works = 1 if provenance.paper == "none" else 2
        assert len(find_keys(provenance.bibtex)) >= n_works, name


def test_every_cited_year_has_an_entry(sources):
    """No author and year in a text is without an entry."""
    for name, source in sources.items():
        rest = source.replace("(", "").replace(")", "")
        for reference in find_references(source):
            rest = rest.replace(reference.citation, "")
        assert not YEAR.search(rest), name


def test_every_entry_is_cited(sources):
    cited = set()
    for source in sources.values():
        cited.update(find_references(source))
    assert {reference.citation for reference in read_references()} - {THIS_PACKAGE} == {
        reference.citation for reference in cited
    } - {THIS_PACKAGE}


def test_entries_are_complete():
    """All entries of the file are read; each has its own key, and an author, a title and a year."""
    text = (files("hpobench_ordered") / "data" / "references.bib").read_text(encoding="utf-8")
    entries = [reference.bibtex for reference in read_references()]
    keys = find_keys("\n".join(entries))
    assert keys == find_keys(text)
    assert len(set(keys)) == len(keys)
    for key, entry in zip(keys, entries, strict=True):
        fields = set(re.findall(r"^  (\w+) = \{", entry, re.MULTILINE))
        expected_fields = (
            {"author", "title"} if key == "hpobench_ordered" else {"author", "title", "year"}
        )
        assert fields >= expected_fields, key
        assert entry.count("{") == entry.count("}"), key


def test_entries_have_the_order_of_the_text():
    bibtex = format_bibtex("this package; Perrone et al. (2018), after (Jones et al. 1998)")
    assert find_keys(bibtex) == ["perrone2018", "jones1998", "hpobench_ordered"]


def test_task_leads_to_what_to_cite():
    bench = load("newsvendor")
    keys = find_keys(bench.tasks[0].provenance.bibtex)
    assert keys == ["hellan2023", "eckman2023", "hpobench_ordered"]
    assert bench.tasks[0].provenance == bench.provenance
