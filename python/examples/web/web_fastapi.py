"""An API in FastAPI whose rate limits all workers of the host share.

    uvicorn --workers 4 web_fastapi:app

Ask for it more often than it allows:

    for i in 1 2 3 4 5 6; do curl -i -X POST http://127.0.0.1:8000/login; done
"""

from __future__ import annotations

from fastapi import FastAPI

from sprag import web

SPACE = "shm:shop"

app = FastAPI()
app.add_middleware(
    web.ASGIMiddleware,
    space=SPACE,
    limits=[
        # By who calls, if that is told, else by the client's address.
        web.Limit("api", "100/minute", burst=20, key=web.header("x-api-key")),
        web.Limit("login", "5/minute", paths=["/login"], methods=["POST"]),
        # What the service can bear, from all of them together; clients are not told.
        web.Limit("service", "2000/second", key="all", advertise=False),
    ],
    exempt=["/healthz"],
)

reports = web.LazyLimiter(SPACE, "reports", "2/hour")


@web.limit(reports, key=lambda user: user)
async def make_report(user: str) -> str:
    return f"a report for {user}"


@app.get("/healthz")
async def healthz() -> str:
    return "ok"


@app.get("/items/{item}")
async def item(item: int) -> dict[str, int]:
    return {"item": item}


@app.post("/login")
async def login() -> str:
    return "hello"


@app.post("/reports/{user}")
async def report(user: str) -> str:
    # What it raises beyond the limit, the middleware answers.
    return await make_report(user)
