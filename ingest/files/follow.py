"""Follow files through rename, copytruncate, compression and deletion.

The follower never decides what a line means. It returns which files have something new, where to
read on, and which positions a commit must move. How far a file was read before is in the lake.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from acktrail.contracts import Table
from acktrail.lake import Lake, Position, Standing
from ingest.files.file_identity import mark, marks, passing_identity, settled_identity
from ingest.files.rotation import UNREADABLE, expand, family
from ingest.files.stream import Key, Stream, Track
from ingest.source import Health

VANISHED_S = 300.0
"""How long a deleted or moved file is kept open for a writer that still holds it."""


@dataclass(frozen=True)
class Gap:
    """Text that was cut away before it could be read."""

    path: str
    at_least: int
    """Bytes that were seen to be there and not read; more may have come and gone unseen."""


class Follower:
    """All files of one source."""

    def __init__(
        self, patterns: Sequence[str], table: Table, scope: str, rotated: bool = True
    ) -> None:
        self.patterns = tuple(patterns)
        self.table = table
        self.scope = scope
        self.rotated = rotated
        self.gaps: list[Gap] = []
        """Found at the last looks; whoever reports them empties the list."""
        self.notes: dict[str, str] = {}
        """Path to what a person should know of it."""
        self._closed: dict[str, str] = {}
        """Path that cannot be opened, and why."""
        self._unmatched: set[str] = set()
        self._looked = False
        self._lake: Lake | None = None
        self._streams: dict[Key, Stream] = {}
        self._tracks: dict[str, Track] = {}
        self._handed: dict[str, int] = {}
        """Positions handed over and not yet known to be in the lake."""
        self._standing: Standing | None = None
        """What the lake says, asked once for all files of a look; old after a commit."""

    def open(self, lake: Lake) -> None:
        """Forget everything but what *lake* knows."""
        self.close()
        self._lake = lake

    def close(self) -> None:
        """Let go of all files."""
        for stream in self._streams.values():
            stream.content.close()
        self._streams.clear()
        self._tracks.clear()
        self._handed.clear()
        self._standing = None

    # -- looking --------------------------------------------------------------------------------

    def look(self, now: float) -> list[Stream]:
        """The files that may have something new, one per text."""
        self._looked = True
        self._standing = None
        present = self._present()
        cut: list[tuple[Stream, Track, int]] = []
        for key, (path, status) in present.items():
            stream = self._streams.get(key)
            if stream is None:
                stream = self._opened(path, now)
                if stream is None:
                    continue
            stream.path, stream.vanished = path, False
            self._refresh(stream, status, now, cut)
        for key, stream in list(self._streams.items()):
            if key not in present:
                self._vanished(stream, now, cut)
        for stream in self._streams.values():
            if stream.track is None or not stream.track.settled:
                self._identify(stream)
        for stream, track, size in cut:
            self._report_gap(stream, track, size)
        return self._readers()

    def _present(self) -> dict[Key, tuple[str, os.stat_result]]:
        present: dict[Key, tuple[str, os.stat_result]] = {}
        self._closed = {}
        named = {pattern: expand([pattern], self.rotated) for pattern in self.patterns}
        self._unmatched = {pattern for pattern, paths in named.items() if not paths}
        for path in dict.fromkeys(path for paths in named.values() for path in paths):
            if path.endswith(UNREADABLE):
                self.notes[path] = "compressed in a way that is not read; use gzip"
                continue
            try:
                status = os.stat(path)
            except OSError:
                continue
            present.setdefault((status.st_dev, status.st_ino), (path, status))
        return present

    def _opened(self, path: str, now: float) -> Stream | None:
        try:
            stream = Stream(path, now)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._closed[path] = f"cannot be opened: {error.strerror}"
            return None
        known = self._streams.get(stream.key)
        if known is not None:  # renamed between the look and the opening
            stream.content.close()
            return known
        self._streams[stream.key] = stream
        return stream

    def _refresh(
        self,
        stream: Stream,
        status: os.stat_result,
        now: float,
        cut: list[tuple[Stream, Track, int]],
    ) -> None:
        changed = stream.changed(status, now)
        if not changed and stream.seen_size:
            return
        same = stream.refresh_head()
        size = stream.content.size()
        track = stream.track
        if track is not None and (not same or (size is not None and size < track.read_to)):
            cut.append((stream, track, stream.seen_size))
            if not track.settled:
                self._tracks.pop(track.app_id, None)
            stream.track = None
            stream.skip_to = None
            stream.scanned_size = -1
        stream.seen_size = size if size is not None else status.st_size

    def _vanished(self, stream: Stream, now: float, cut: list[tuple[Stream, Track, int]]) -> None:
        stream.vanished = True
        if not stream.compressed:
            descriptor = stream.content.descriptor  # type: ignore[attr-defined]
            self._refresh(stream, os.fstat(descriptor), now, cut)
        if stream.idle_s(now) > VANISHED_S or (stream.compressed and stream.exhausted):
            stream.content.close()
            del self._streams[stream.key]

    # -- identity -------------------------------------------------------------------------------

    def _identify(self, stream: Stream) -> None:
        settled = settled_identity(stream.head)
        short = passing_identity(stream.head, *stream.key)
        if settled is not None:
            track = self._settled_track(stream, settled)
        elif short is not None and not self._is_copy(stream):
            track = stream.track or self._short_track(stream, short)
        else:
            return
        stream.track = track

    def _settled_track(self, stream: Stream, key: str) -> Track:
        app_id = f"{self.scope}/{key}"
        before = stream.track
        track = self._tracks.get(app_id)
        if track is None:
            version = self._positions([app_id])[app_id]
            track = Track(app_id, key, version, version or 0, version)
            self._tracks[app_id] = track
            if version is None and before is None:
                short = passing_identity(stream.head, *stream.key)
                before = self._short_track(stream, short) if short is not None else None
        if before is not None and before is not track and before.read_to > track.read_to:
            track.read_to = before.read_to
            track.promoted_from = before
        return track

    def _short_track(self, stream: Stream, key: str) -> Track:
        """The track of a short text: read as far as a mark of its own bytes says."""
        app_id = f"{self.scope}/{key}"
        known = self._tracks.get(app_id)
        if known is not None:
            return known
        known_marks = marks(stream.head, family(stream.path))
        noted = {f"{self.scope}/{m}": p for m, p in known_marks.items()}
        versions = self._positions([app_id, *noted])
        read_to = max((p for m, p in noted.items() if versions[m] == p), default=0)
        began = versions[app_id]
        track = Track(app_id, key, began, read_to, began, settled=False)
        self._tracks[app_id] = track
        return track

    def _is_copy(self, stream: Stream) -> bool:
        """Whether this short file is, or is becoming, a copy of another one beside it.

        Rotation by copying and compressing shows the same text twice for a while. The copy waits;
        when it is alone, the marks say how much of its text has been read.
        """
        if stream.compressed and not stream.complete and not stream.damaged:
            return True
        name = family(stream.path)
        return any(
            other is not stream
            and other.head.startswith(stream.head)
            and (len(other.head) > len(stream.head) or other.track is not None)
            and family(other.path) == name
            for other in self._streams.values()
        )

    def _positions(self, app_ids: Sequence[str]) -> dict[str, int | None]:
        assert self._lake is not None, "open() comes first"
        known = {a: self._handed[a] for a in app_ids if a in self._handed}
        asked = [a for a in app_ids if a not in known]
        if asked and self._standing is None:
            self._standing = self._lake.standing(self.table)
        standing = self._standing
        return {**known, **{a: standing.of(a) for a in asked if standing is not None}}

    # -- reading on -----------------------------------------------------------------------------

    def _readers(self) -> list[Stream]:
        """One file per text: the longest plain one; a compressed one where there is no other."""
        chosen: dict[str, Stream] = {}
        for stream in self._streams.values():
            if stream.track is None:
                continue
            best = chosen.get(stream.track.app_id)
            if best is None or _preference(stream) > _preference(best):
                chosen[stream.track.app_id] = stream
        return list(chosen.values())

    def moved(self, stream: Stream, reached: int) -> tuple[Position, ...]:
        """The positions a commit must move when *stream* has been read up to *reached*."""
        track = stream.track
        assert track is not None, "only identified files are read"
        positions: list[Position] = []
        if track.promoted_from is not None:
            short = track.promoted_from
            positions.append(Position(short.app_id, short.began, reached))
            short.began = short.read_to = reached
            track.promoted_from = None
        positions.append(Position(track.app_id, track.began, reached))
        track.began = track.read_to = reached
        if not track.settled:
            name = family(stream.path)
            noted = f"{self.scope}/{mark(stream.content.read_at(0, reached), name)}"
            positions.append(Position(noted, self._positions([noted])[noted], reached))
        self._handed.update((p.app_id, p.reached) for p in positions)
        return tuple(positions)

    def one_more_gap(self) -> Position:
        """A position that counts gaps, so that each is in the lake's log for good."""
        app_id = f"{self.scope}/gaps"
        before = self._positions([app_id])[app_id]
        self._handed[app_id] = (before or 0) + 1
        return Position(app_id, before, (before or 0) + 1)

    def committed(self, positions: Iterable[Position]) -> None:
        """These positions are in the lake."""
        self._standing = None
        for position in positions:
            track = self._tracks.get(position.app_id)
            if track is not None:
                track.committed = position.reached
            if self._handed.get(position.app_id) == position.reached:
                del self._handed[position.app_id]
        carried = {id(s.track) for s in self._streams.values()}
        for app_id, track in list(self._tracks.items()):
            if id(track) not in carried and track.committed == track.began:
                del self._tracks[app_id]

    def health(self, now: float, more_notes: Sequence[str] = ()) -> Health:
        """Bytes read and not yet read (compressed files are not counted), what cannot be read."""
        if not self._looked:
            self.look(now)
        lag = read = 0
        readers = self._readers()
        for stream in readers:
            assert stream.track is not None, "only identified files are read"
            size = stream.content.size()
            lag += 0 if size is None else max(0, size - stream.track.read_to)
            read += stream.track.read_to
        unmatched = [f"{p}: matches no file" for p in self.patterns if p in self._unmatched]
        closed = [f"{path}: {why}" for path, why in sorted(self._closed.items())]
        return Health(
            float(lag),
            "bytes",
            (*(f"{path}: {note}" for path, note in self.notes.items()), *more_notes),
            f"{len(readers)} {'file' if len(readers) == 1 else 'files'}, {read} bytes",
            (*unmatched, *closed),
        )

    def _report_gap(self, stream: Stream, track: Track, seen: int) -> None:
        """A file was cut in place: what was not read is gone unless another file carries it."""
        carriers = [s for s in self._streams.values() if s.track is track]
        sizes = [s.content.size() for s in carriers]
        if any(size is None for size in sizes):
            return
        reached = max([track.read_to, *(size for size in sizes if size is not None)])
        missing = max(0, seen - reached)
        if missing or not carriers:
            self.gaps.append(Gap(stream.path, missing))


def _preference(stream: Stream) -> tuple[bool, int]:
    size = stream.content.size()
    return (size is not None, size or 0)
