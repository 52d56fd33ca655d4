"""Saving where a loader stands, and going on from there."""
import json

import pytest
from conftest import LONG, contents, loader

import shardpack

COLUMNS = {"fields": ["image", "label", "index", "valid"]}


@pytest.fixture(scope="module")
def two_epochs(data):
    with loader(data, num_workers=0, **COLUMNS) as batches:
        return contents(batches) + contents(batches)


@pytest.mark.parametrize("workers", [0, 2])
def test_resume_at_every_batch(data, two_epochs, workers):
    states = []
    with loader(data, num_workers=workers, **COLUMNS) as batches:
        states.append(batches.state_dict())
        for _ in range(2):
            for _ in batches:
                states.append(batches.state_dict())
    with loader(data, num_workers=2 - workers, **COLUMNS) as batches:
        for at, state in enumerate(states):
            if not LONG and at not in (0, 1, 5, 9, 10, 11, 19):
                continue
            state = json.loads(json.dumps(state))
            assert len(json.dumps(state)) < 600
            batches.load_state_dict(state)
            epoch = 0 if at <= 10 else 1
            assert batches.epoch == epoch and batches.remaining == 10 * (epoch + 1) - at
            assert contents(batches) == two_epochs[at : 10 * (epoch + 1)]
            if epoch == 0:
                assert contents(batches) == two_epochs[10:]  # the next epoch is whole


def test_usual_training_loop_resumes(data, two_epochs):
    """With set_epoch at the beginning of each epoch, also the one that goes on."""
    with loader(data, **COLUMNS) as batches:
        batches.set_epoch(1)
        for i, _ in enumerate(batches):
            if i == 3:
                state = batches.state_dict()
                break
    with loader(data, **COLUMNS) as batches:
        batches.load_state_dict(state)
        have = []
        for epoch in range(batches.epoch, 2):
            batches.set_epoch(epoch)
            have += contents(batches)
    assert have == two_epochs[14:]


def test_set_epoch_to_another_one_forgets_the_state(data, two_epochs):
    with loader(data, **COLUMNS) as batches:
        next(iter(batches))
        state = batches.state_dict()
        batches.load_state_dict(state)
        batches.set_epoch(1)
        assert contents(batches) == two_epochs[10:]


def test_state_at_the_end_of_an_epoch(data, two_epochs):
    with loader(data, **COLUMNS) as batches:
        for _ in batches:
            inside = batches.state_dict()  # after the last batch
        behind = batches.state_dict()
    assert (inside["epoch"], behind["epoch"]) == (0, 1)
    with loader(data, **COLUMNS) as batches:
        batches.load_state_dict(inside)
        assert batches.remaining == 0
        assert contents(batches) == []  # nothing is left of it, and no epoch is lost
        assert contents(batches) == two_epochs[10:]
        batches.load_state_dict(behind)
        assert contents(batches) == two_epochs[10:]


def test_load_twice_and_while_iterating(data, two_epochs):
    with loader(data, **COLUMNS) as batches:
        steps = iter(batches)
        for _ in range(3):
            next(steps)
        state = batches.state_dict()
        next(steps)
        batches.load_state_dict(state)
        batches.load_state_dict(state)
        with pytest.raises(RuntimeError, match="moved by load_state_dict"):
            next(steps)
        steps = iter(batches)
        assert contents([next(steps)]) == two_epochs[3:4]
        assert batches.state_dict() != state


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_resume_with_other_ranks(data, ranks):
    """What two ranks saved goes on with others: the same samples in the same order."""
    saved = [loader(data, batch_size=12, fields=["index"], rank=rank, world_size=2) for rank in range(2)]
    for batches in saved:
        steps = iter(batches)
        next(steps), next(steps)
    states = [batches.state_dict() for batches in saved]
    assert states[0] == states[1]
    with loader(data, batch_size=24, chunk=16, fields=["index"]) as one:
        order = [i for batch in one for i in batch.index]
    parts = []
    for rank in range(ranks):
        with loader(data, batch_size=12, fields=["index", "valid"], rank=rank, world_size=ranks, tail="pad") as batches:
            batches.load_state_dict(states[0])
            parts.append([(batch.index.tolist(), batch.valid.tolist()) for batch in batches])
    have = [i for step in zip(*parts) for index, valid in step for i, ok in zip(index, valid) if ok]
    assert have == order[48:]
    assert len({len(part) for part in parts}) == 1
    for batches in saved:
        batches.close()


def test_resume_with_another_batch_size(data):
    with loader(data, fields=["index"]) as batches:
        order = [i for batch in batches for i in batch.index]
        batches.set_epoch(0)
        next(iter(batches))
        state = batches.state_dict()
    with loader(data, batch_size=7, fields=["index"]) as batches:
        batches.load_state_dict(state)
        assert batches.remaining == 21
        assert [i for batch in batches for i in batch.index] == order[16:]


@pytest.mark.parametrize("option, value", [("seed", 1), ("shuffle", False), ("echo", 2), ("limit", 50), ("chunk", 8),
                                           ("lane_buffer", 32)])  # fmt: skip
def test_what_must_not_change(data, option, value):
    with loader(data, num_workers=0) as batches, loader(data, num_workers=0, **{option: value}) as other:
        with pytest.raises(shardpack.ChangedError, match=option):
            other.load_state_dict(batches.state_dict())


def test_another_dataset(data, photos, tmp_path):
    shardpack.pack(photos, tmp_path / "other")
    with loader(data, num_workers=0) as batches, loader(tmp_path / "other", num_workers=0) as other:
        with pytest.raises(ValueError, match="the dataset's fingerprint was"):
            other.load_state_dict(batches.state_dict())
