"""An API in Flask whose rate limits all workers of the host share.

    gunicorn --workers 4 web_flask:app

Ask for it more often than it allows:

    for i in 1 2 3 4 5 6; do curl -i http://127.0.0.1:8000/login -d user=ann; done
"""

from __future__ import annotations

from flask import Flask, Response, request

from sprag import web

SPACE = "shm:shop"

app = Flask(__name__)
app.wsgi_app = web.WSGIMiddleware(  # type: ignore[method-assign]
    app.wsgi_app,
    SPACE,
    [
        # By the client's address, if nothing else is said.
        web.Limit("api", "100/minute", burst=20),
        web.Limit("login", "5/minute", paths=["/login"], methods=["POST"]),
        # What the service can bear, from all of them together; clients are not told.
        web.Limit("service", "2000/second", key="all", advertise=False),
    ],
    exempt=["/healthz"],
)

reports = web.LazyLimiter(SPACE, "reports", "2/hour")


@web.limit(reports, key=lambda user: user)
def make_report(user: str) -> str:
    return f"a report for {user}"


@app.get("/healthz")
def healthz() -> str:
    return "ok"


@app.get("/items/<int:item>")
def item(item: int) -> dict[str, int]:
    return {"item": item}


@app.post("/login")
def login() -> str:
    return f"hello {request.form['user']}"


@app.post("/reports/<user>")
def report(user: str) -> str:
    return make_report(user)


@app.errorhandler(web.RateLimitedError)
def too_many(error: web.RateLimitedError) -> Response:
    """Flask catches what its handlers raise, so the middleware does not see it."""
    return Response(error.body, error.status, error.headers)
