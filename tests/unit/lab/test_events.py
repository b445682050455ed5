"""Progress: what a client has printed so far, read while it grows."""

from __future__ import annotations

import json

from lab.events import ClientProgress


def line(**event):
    return json.dumps(event) + "\n"


def ack(at):
    return line(name="producer_send_success", timestamp=at)


def test_nothing_printed_is_no_progress(tmp_path):
    assert ClientProgress(tmp_path / "none.jsonl").update().counts == {}


def test_lines_are_counted_once_and_only_when_whole(tmp_path):
    path = tmp_path / "p.jsonl"
    progress = ClientProgress(path)
    path.write_text(ack(10) + ack(20)[:9])
    assert progress.update().acked_since(0) == 1
    path.write_text(ack(10) + ack(20) + line(name="producer_send_error"))
    assert progress.update().acked_since(0) == 2
    assert progress.update().failed == 1


def test_acks_count_from_the_time_they_were_told_not_read(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text(ack(10) + ack(20) + ack(30))
    assert ClientProgress(path).update().acked_since(20) == 2


def test_a_consumer_knows_its_partitions_and_how_far_it_has_read(tmp_path):
    path = tmp_path / "c.jsonl"
    place = {"topic": "t", "partition": 1}
    path.write_text(
        line(name="partitions_assigned", partitions=[place])
        + "a note to people\n"
        + line(name="record_data", **place, offset=7)
        + line(name="record_data", **place, offset=5)
    )
    progress = ClientProgress(path).update()
    assert progress.partitions == {("t", 1)}
    assert progress.next_offsets == {("t", 1): 6}
    with path.open("a") as file:
        file.write(line(name="process_exited", timestamp=9, code=-9))
    assert progress.update().partitions == set()
