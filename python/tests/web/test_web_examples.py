"""The example applications, run as they say."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from urllib.parse import urlencode

import pytest

from web.conftest import parsed
from web.serving import Server, serve

EXAMPLES = Path(__file__).parents[2] / "examples" / "web"
COMMANDS = {
    "flask": ["gunicorn", "--bind", "127.0.0.1:{port}", "--workers", "2", "web_flask:app"],
    "fastapi": ["uvicorn", "--port", "{port}", "--workers", "2", "web_fastapi:app"],
}


def ask(
    server: Server, method: str, path: str, **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    body = urlencode({"user": "ann"}) if method == "POST" else None
    form = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
    try:
        connection.request(method, path, body, {"Connection": "close", **form, **headers})
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("framework", COMMANDS)
def test_the_example_limits_what_it_says(framework: str, tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(EXAMPLES), "SPRAG_DIR": str(tmp_path)}
    with serve(COMMANDS[framework], tmp_path, "/healthz", **environment) as server:
        response, body = ask(server, "GET", "/items/7")
        assert (response.status, json.loads(body)) == (200, {"item": 7})
        assert parsed(response.headers["RateLimit-Policy"]) == [
            ("api", {"q": 100, "w": 60, "sprag-burst": 20})
        ]

        logins = [ask(server, "POST", "/login")[0] for _ in range(6)]
        assert [response.status for response in logins] == [200] * 5 + [429]
        refused = logins[-1].headers
        assert [name for name, _ in parsed(refused["RateLimit-Policy"])] == ["api", "login"]
        [(name, told)] = parsed(refused["RateLimit"])
        assert (name, told["r"]) == ("login", 0)
        assert told["t"] <= int(refused["Retry-After"]) <= 12

        reports = [ask(server, "POST", "/reports/ann") for _ in range(3)]
        assert [response.status for response, _ in reports] == [200, 200, 429]
        assert json.loads(reports[-1][1])["violated-policies"] == ["reports"]
        assert ask(server, "POST", "/reports/bob")[0].status == 200
        assert ask(server, "GET", "/healthz")[0].headers["RateLimit"] is None
