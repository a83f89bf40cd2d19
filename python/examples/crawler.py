"""Tasks of an event loop that are polite: at most two at once of each host, and so many a second of all."""

from __future__ import annotations

import asyncio

import sprag

URLS = [f"https://{host}.example/{page}" for page in range(4) for host in ("ann", "bob", "eve")]


async def fetch(space: sprag.Space, url: str) -> str:
    host = url.split("/")[2]
    pace = space.limiter("pace", "1000/second", burst=1)
    # A place ahead in time: waiting for it is the loop's own business.
    place = pace.reserve("all", 1, wait_max=10)
    await asyncio.sleep(place.act_after)
    async with space.concurrency("per host", 2).key(host):
        await asyncio.sleep(0.001)  # Here it would be fetched.
        return host


async def main() -> None:
    space = sprag.open("mem:")
    hosts = await asyncio.gather(*(fetch(space, url) for url in URLS))
    print(f"{len(hosts)} pages of {len(set(hosts))} hosts")


if __name__ == "__main__":
    asyncio.run(main())
