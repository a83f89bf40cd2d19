"""A Flask application under real servers."""

from flask import Flask

from web.served import TimedWSGI

app = Flask(__name__)


@app.get("/")
@app.get("/pid")
def index() -> str:
    return "ok"


app.wsgi_app = TimedWSGI(app.wsgi_app)  # type: ignore[method-assign]
