from tengen.games.drawing import Markup, element, text

HOSTILE = '</p><script>alert("x")</script>&\x00\ud800\u202e'


def test_text_is_never_an_element():
    shown = element("p", text(HOSTILE), title=HOSTILE)
    assert "<script" not in shown
    assert shown.count("<") == shown.count(">") == 2
    assert "&lt;/p&gt;&lt;script&gt;alert(&quot;x&quot;)" in shown


def test_what_cannot_be_shown_is_replaced():
    shown = text(HOSTILE)
    assert not {"\x00", "\ud800", "\u202e"} & set(shown)
    assert shown.encode("utf-8")


def test_attributes():
    made = element("td", Markup("1"), class_="number", stroke_width=2.50001, scope=None)
    assert made == '<td class="number" stroke-width="2.5">1</td>'
