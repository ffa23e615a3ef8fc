"""What another thread does once a call of C has begun to wait."""

import opcode
import sys
import threading


def amid(call, act):
    """Calls `call`, a function of C that lets go of the interpreter, and meanwhile `act` in another thread."""
    main, over = threading.get_ident(), threading.Event()

    def waits():
        call()

    def watch():
        while not over.wait(0.001):
            frame = sys._current_frames()[main]
            code = frame.f_code
            if code is waits.__code__ and opcode.opname[code.co_code[frame.f_lasti]].startswith("CALL"):
                act()
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        waits()
    finally:
        over.set()
        watcher.join()
