"""The page of measured figures agrees with the result files that it links."""

import re

import pytest

from tests.unit.docs.pages import ROOT

PAGE = ROOT / "docs" / "measured.md"
ROW = re.compile(r"^\| (.+?) \| (.+?) \| \[(\S+)\]\((\S+)\): \"(.+)\" \|$", re.M)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def squeezed(text):
    return " ".join(text.split())


def rows():
    return [
        (figure, value, link, quotation.replace("\\|", "|"))
        for figure, value, _, link, quotation in ROW.findall(PAGE.read_text())
    ]


def test_every_figure_has_a_quotation():
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    heads = [line for line in lines if line.startswith("| figure ")]
    assert len(rows()) == len(lines) - len(heads)
    assert len(rows()) > 20


def is_near(number, others):
    """Returns whether another number, over 1, 1e3 or 1e6, rounds to ``number``."""
    value = float(number.replace(",", ""))
    digits = len(number.partition(".")[2])
    found = [float(other.replace(",", "")) for other in others]
    return any(
        abs(round(other / scale, digits) - value) < 1e-9
        for other in found
        for scale in (1.0, 1e3, 1e6)
    )


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:40])
def test_the_file_has_the_quotation_and_that_the_figure(row):
    """At least one of a row's numbers agrees, rounded; won games in per cent."""
    _, value, link, quotation = row
    assert squeezed(quotation) in squeezed((PAGE.parent / link).resolve().read_text())
    told = NUMBER.findall(quotation)
    if won := re.match(r"(\d+) of (\d+) won", quotation):
        told.append(str(100 * int(won[1]) / int(won[2])))
    assert any(is_near(number, told) for number in NUMBER.findall(value))
