"""A Starlette application under real servers."""

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from web.served import TimedASGI


async def index(request: Request) -> PlainTextResponse:
    return PlainTextResponse("ok")


app = Starlette(
    routes=[Route("/", index), Route("/pid", index)], middleware=[Middleware(TimedASGI)]
)
