"""A FastAPI application under real servers."""

from fastapi import FastAPI

from web.served import TimedASGI

app = FastAPI()


@app.get("/")
@app.get("/pid")
def index() -> str:
    return "ok"


app.add_middleware(TimedASGI)
