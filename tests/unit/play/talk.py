"""A session with input line by line, and its output."""

import threading

from tengen.play.session.session import LineReader


class Talk:
    """An engine of a protocol with both ends of its session."""

    def __init__(self, engine, commands, player, simulations=8, threads=1, **settings):
        self.text = ""
        self.is_written = threading.Condition()
        self.lines = LineReader(self._read)
        self._chunks = []
        self._given = threading.Semaphore(0)
        self.engine = engine(
            player,
            commands,
            simulations=simulations,
            threads=threads,
            write=self.write,
            lines=self.lines,
            **settings,
        )

    def say(self, chunk):
        """Sends bytes; an empty chunk ends the input."""
        self._chunks.append(chunk)
        self._given.release()

    def when_written(self, words, *chunks):
        """Sends chunks as soon as the engine has written ``words``."""

        def wait():
            with self.is_written:
                self.is_written.wait_for(lambda: words in self.text)
            for chunk in chunks:
                self.say(chunk)

        thread = threading.Thread(target=wait)
        thread.start()
        return thread

    def write(self, text):
        with self.is_written:
            self.text += text
            self.is_written.notify_all()

    def _read(self):
        self._given.acquire()
        return self._chunks.pop(0)
