"""Ctrl-C at a place of the Python package that a test names."""

import opcode
import os
import signal
import sys
import threading

from python_daemon import WithDaemon

import gradcube

PACKAGE = os.path.dirname(gradcube.__file__)
# After these instructions Python looks for signals.
LOOKS = ("CALL", "RESUME", "JUMP_BACKWARD", "JUMP_ABSOLUTE")


class ControlC:
    """Raises KeyboardInterrupt at the n-th place of what it runs, of those in the package at which Python can raise it.

    In a destructor Python would print it and go on.
    """

    def __init__(self, place):
        self.left = place
        self.before = {}  # of a frame: its last instruction

    def run(self, call):
        """True where there is no such place."""
        sys.settrace(self.enter)
        try:
            call()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        self.before.clear()
        return self.left > 0

    def enter(self, frame, _event, _argument):
        if not frame.f_code.co_filename.startswith(PACKAGE) or self.is_in_destructor(frame):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.step

    @staticmethod
    def is_in_destructor(frame):
        while frame is not None and frame.f_code.co_name != "__del__":
            frame = frame.f_back
        return frame is not None

    def step(self, frame, event, _argument):
        if event == "opcode":
            before = self.before.get(frame, "")
            self.before[frame] = now = opcode.opname[frame.f_code.co_code[frame.f_lasti]]
            if before.startswith(LOOKS) and now != "PUSH_EXC_INFO":  # where the call has raised, it does not look
                self.left -= 1
                if self.left == 0:
                    raise KeyboardInterrupt
        return self.step


class WithControlC(WithDaemon):
    @staticmethod
    def names_in(thread):
        """The functions that it is in."""
        names, frame = [], sys._current_frames().get(thread)
        while frame is not None:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        return names

    def interrupted(self, call, where="_wait", has_begun=lambda: True):
        """The exception of what Ctrl-C has ended as it waited in this function of the package, and had begun."""
        main = threading.get_ident()

        def interrupt():
            self.wait_for(lambda: where in (found := self.names_in(main)) and "start" not in found)  # of a thread
            self.wait_for(has_begun)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with self.assertRaises(KeyboardInterrupt) as caught:
            call()
        thread.join()
        return caught.exception
