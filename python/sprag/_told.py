"""The one thread that calls back when holds are lost. It starts when the first hold asks for that."""

from __future__ import annotations

import contextlib
import os
import sys
import threading

from sprag._sprag import LostQueue

_lock = threading.Lock()
_queue: LostQueue | None = None


def queue() -> LostQueue:
    """The queue that the thread takes from, which is started if there is none."""
    global _queue
    with _lock:
        if _queue is None:
            fresh = LostQueue()
            # A daemon: what a callback waits for does not keep the interpreter from ending.
            threading.Thread(target=_call, args=(fresh,), name="sprag-on-lost", daemon=True).start()
            _queue = fresh
        return _queue


def _call(queue: LostQueue) -> None:
    while True:
        hold = queue.next()()
        # Nobody has it any more, so nobody does anything under it.
        callback = None if hold is None else hold._on_lost
        if hold is None or callback is None:
            continue
        try:
            callback(hold)
        except BaseException:
            # As for any thread, where `sys.exit()` ends it without a word; the next one is told all the same.
            with contextlib.suppress(BaseException):
                threading.excepthook(
                    threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread()))
                )
        del callback, hold


def _forget_in_child() -> None:
    global _queue, _lock
    _lock = threading.Lock()
    _queue = None


os.register_at_fork(after_in_child=_forget_in_child)
