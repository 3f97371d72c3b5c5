"""How places are shared between hosts."""

from tengen.transport.server import Places


def test_one_host_leaves_places_for_others():
    places = Places(8)
    assert [places.take("a") for _ in range(8)] == [True] * 6 + [False] * 2
    assert [places.take("b") for _ in range(3)] == [True, True, False]
    places.leave("b")
    assert [places.take("a"), places.take("c"), places.take(None)] == [0, 1, 0]
    for peer in ("a",) * 6 + ("b", "c"):
        places.leave(peer)
    # Of this host there is one only.
    assert [places.take(None) for _ in range(9)] == [True] * 8 + [False]
    assert Places(1).take("a")
