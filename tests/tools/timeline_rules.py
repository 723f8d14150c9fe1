"""The rules by which Perfetto's trace processor reads a timeline. A timeline that breaks one is not refused: bars or arrows are
dropped, drawn inside other bars, or turned around.

Tested with version 52 of the trace processor."""
import collections

HOST = 0
HOLDS_OTHERS = ("communication",)  # categories of a device's bars that may contain others


class Bar:
    """A bar from `begin` up to, but without, `end`, in nanoseconds."""

    def __init__(self, event, end):
        self.name, self.kind, self.track = event["name"], event.get("cat", ""), (event["pid"], event["tid"])
        self.begin, self.end = nanoseconds(event["ts"]), end

    def __str__(self):
        return f"\"{self.name}\" from {self.begin} to {self.end} ns of track {self.track}"


def nanoseconds(microseconds):
    return round(microseconds * 1000)


def find_bars(events):
    """Returns the bars of each track, outer bars first. A range without an end lasts until the last event."""
    tracks, opened = collections.defaultdict(list), collections.defaultdict(list)
    last = max((nanoseconds(e["ts"] + e.get("dur", 0)) for e in events if "ts" in e), default=0)
    for e in events:
        track = e.get("pid"), e.get("tid")
        if e["ph"] == "X":
            tracks[track].append(Bar(e, nanoseconds(e["ts"]) + nanoseconds(e["dur"])))
        elif e["ph"] == "B":
            opened[track].append(e)
        elif e["ph"] == "E" and opened[track]:
            tracks[track].append(Bar(opened[track].pop(), nanoseconds(e["ts"])))
    for track, begins in opened.items():
        tracks[track] += [Bar(e, last) for e in begins]
    for bars in tracks.values():
        bars.sort(key=lambda bar: (bar.begin, -bar.end))
    return tracks


def broken_by_bars(bars):
    """A bar that overlaps another one in part is dropped. A bar without length is drawn inside the one that begins there."""
    outer = []
    for bar in bars:
        while outer and outer[-1].end <= bar.begin:
            outer.pop()
        on_device = bar.track[0] != HOST
        if on_device and bar.end <= bar.begin:
            yield f"{bar} has no length"
        if outer and outer[-1].end < bar.end:
            yield f"{bar} overlaps {outer[-1]} in part"
        elif outer and on_device and outer[-1].kind not in HOLDS_OTHERS:
            yield f"{bar} is inside {outer[-1]}"
        outer.append(bar)


def broken_by_arrows(events, tracks):
    """An arrow starts in the bar around its start, and ends in the first bar that begins after its end. If there is no such
    bar, or if the end is not after the start, it is dropped. If the second bar begins first, it is turned around."""
    starts = {}
    for e in (e for e in events if e["ph"] == "s"):
        ts, track = nanoseconds(e["ts"]), (e["pid"], e["tid"])
        around = [bar for bar in tracks.get(track, ()) if bar.begin <= ts < bar.end]
        if e["id"] in starts:
            yield f"arrow {e['id']} starts twice"
        if not around:
            yield f"arrow {e['id']} starts outside of all bars, at {ts} ns of track {track}"
        starts[e["id"]] = ts, around[-1] if around else None
    for e in (e for e in events if e["ph"] == "f"):
        ts, track = nanoseconds(e["ts"]), (e["pid"], e["tid"])
        from_ts, source = starts.get(e["id"], (None, None))
        target = next((bar for bar in tracks.get(track, ()) if bar.begin >= ts), None)
        if e.get("bp") == "e":
            yield f"arrow {e['id']} ends in the bar around its end, which may begin before the arrow"
        if from_ts is None or from_ts >= ts:
            yield f"arrow {e['id']} ends at {ts} ns, but starts at {from_ts}"
        elif source and target and target.begin < source.begin:
            yield f"arrow {e['id']} leads back from {source} to {target}"


def broken_by_names(events, tracks):
    """A viewer shows a track without a name by its number."""
    named = {e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    named_tracks = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    yield from (f"process {pid} has no name" for pid in sorted({e["pid"] for e in events} - named))
    yield from (f"track {track} has no name" for track in sorted(set(tracks) - named_tracks))


def broken_rules(events):
    """Returns a text for each rule that a timeline breaks."""
    tracks = find_bars(events)
    found = [text for bars in tracks.values() for text in broken_by_bars(bars)]
    if not events:
        found.append("a list without events is not accepted as a timeline")
    return found + list(broken_by_arrows(events, tracks)) + list(broken_by_names(events, tracks))
