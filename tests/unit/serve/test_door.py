"""Access control over a real socket: host names, tokens, other sites, sizes."""

import http.client

import pytest

from tests.unit.serve.served import serving

TOKEN = "a-token-of-the-test"


def test_a_page_may_run_nothing_of_others(site):
    reply = site.ask("/")
    assert reply.status == 200
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["referrer-policy"] == "no-referrer"


POSITION = "/api/runs/tictactoe/play/position"
FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
    {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors"},
]
FORMS = ("text/plain", "application/x-www-form-urlencoded")


@pytest.mark.parametrize(
    ("path", "asked", "status"),
    [
        # Unknown host names, and those of this machine.
        *(
            ("/api/runs", {"Host": host}, 421)
            for host in ("evil.example", "evil.example:1", "", "10.0.0.1")
        ),
        *(
            ("/api/runs", {"Host": f"{name}:PORT"}, 200)
            for name in ("localhost", "127.0.0.1", "LOCALHOST")
        ),
        # Requests from other sites are refused, but a link there may open the page.
        *(("/api/runs", headers, 403) for headers in FOREIGN),
        *((POSITION, {"body": {"moves": []}, **headers}, 403) for headers in FOREIGN),
        ("/", {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}, 200),
        # A form on another site has no effect.
        *(
            (POSITION, {"data": b'{"moves": []}', "Content_Type": t}, 415)
            for t in FORMS
        ),
        *(
            ("/api/runs", {"method": method}, 405)
            for method in ("PUT", "DELETE", "PATCH", "OPTIONS")
        ),
    ],
)
def test_who_may_ask_for_what(site, path, asked, status):
    if "Host" in asked:
        asked = {"Host": asked["Host"].replace("PORT", str(site.port))}
    assert site.ask(path, **asked).status == status


def test_a_long_body_is_refused(site):
    data = b" " * (64 * 1024 + 1)
    json = {"Content_Type": "application/json"}
    assert site.ask(POSITION, data=data, **json).status == 413
    # The limit also holds if the length is not declared.
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=900)
    headers = {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}
    connection.putrequest("POST", POSITION)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    for _ in range(70):
        connection.send(b"400\r\n" + b" " * 1024 + b"\r\n")
    assert connection.getresponse().status == 413
    connection.close()


@pytest.fixture(scope="module")
def locked(shelf, site):
    with serving([], folder=shelf.folder, token=TOKEN, any_address=True) as locked:
        yield locked


def test_nothing_is_shown_without_the_token(locked):
    for path in ("/", "/api/runs", "/assets/app.js", "/api/runs/tictactoe"):
        assert locked.ask(path).status == 401
        assert locked.ask(f"{path}?token=wrong").status == 401
        assert locked.ask(path, Authorization="Bearer wrong").status == 401
        assert locked.ask(path, Authorization=f"Basic {TOKEN}").status == 401
    assert locked.ask("/api/runs/tictactoe/play/search", {"moves": []}).status == 401


def test_the_printed_address_opens_the_page_once_for_all(locked):
    reply = locked.ask(f"/runs/tictactoe?x=1&token={TOKEN}")
    assert reply.status == 303
    assert reply.headers["location"] == "/runs/tictactoe?x=1"
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    known = cookie.partition(";")[0]
    assert locked.ask("/api/runs", Cookie=known).status == 200
    assert locked.ask("/api/runs", Authorization=f"Bearer {TOKEN}").status == 200


@pytest.mark.parametrize("path", ["//evil.example", "/%5Cevil.example", "///a"])
def test_the_token_leads_nobody_elsewhere(locked, path):
    reply = locked.ask(f"{path}?token={TOKEN}")
    assert reply.status == 303
    assert not reply.headers["location"].startswith(("//", "/\\"))


def test_a_wide_server_has_addresses_but_no_foreign_names(locked):
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    for host in ("192.0.2.7:8420", "[2001:db8::1]:8420", "localhost"):
        assert locked.ask("/api/runs", Host=host, **bearer).status == 200
    assert locked.ask("/api/runs", Host="evil.example", **bearer).status == 421


def test_odd_queries_and_cookies_are_no_token(locked):
    for path in ("/?token=%ff%fe", "/?" + "a&" * 200, "/?token=" + "x" * 3000):
        assert locked.ask(path).status == 401
    assert locked.ask("/", Cookie='tengen-1="\\"; a=,;=').status == 401
