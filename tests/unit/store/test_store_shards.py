"""One view of several servers, against what one table of all items would be."""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tengen.errors import RunError, TengenWarning, UsageError
from tengen.store import (
    Column,
    RateLimits,
    Selector,
    Store,
    StoreConfig,
    StoreTimeout,
    TableConfig,
    shards,
)

VALUE = {"value": Column(dtype="int64")}
REPLAY = TableConfig(name="t", columns=VALUE)
PRIORITIZED = TableConfig(
    name="t", columns=VALUE, sampler=Selector(kind="prioritized", exponent=0.5)
)
QUEUE = TableConfig(
    name="t",
    columns=VALUE,
    sampler=Selector(kind="fifo"),
    max_times_sampled=1,
    limits=RateLimits.queue(1000),
)

Open = Callable[..., tuple[Store, list[Store]]]


@pytest.fixture
def open_shards(monkeypatch) -> Iterator[Open]:
    """Makes a server for each list of values, and a client of all."""
    monkeypatch.setattr(shards, "_LOOK_S", 0.05)
    with contextlib.ExitStack() as stack:

        def make(table: TableConfig, *held: list[int]) -> tuple[Store, list[Store]]:
            servers = []
            for seed, values in enumerate(held):
                server = stack.enter_context(
                    Store(
                        StoreConfig.of(
                            [table],
                            memory_bytes=1 << 20,
                            seed=seed,
                            listen="127.0.0.1:0",
                        )
                    )
                )
                fill(server, values)
                servers.append(server)
            client = Store.connect([server.address for server in servers])
            return stack.enter_context(client), servers

        yield make


def fill(store: Store, values: list[int]) -> None:
    """Inserts values, each with itself as its priority."""
    if values:
        store.table("t").insert(
            "filler", 0, {"value": np.array(values)}, np.array(values, np.float64)
        )


def lose(server: Store, client: Store) -> None:
    server.close()
    until(lambda: bool(client.missing))


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 600.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_even_draws_are_even_over_the_whole(open_shards: Open) -> None:
    held = [list(range(60)), list(range(100, 120)), []]
    client, _ = open_shards(REPLAY, *held)
    turns: Counter[int] = Counter()
    drawn: Counter[int] = Counter()
    sampler = client.table("t").sampler(4)
    for _ in range(400):
        batch = sampler.sample(timeout_s=300.0)
        values = batch.columns["value"].tolist()
        turns[values[0] // 100] += 1
        drawn.update(values)
        assert batch.table_size == 80
        np.testing.assert_allclose(batch.probabilities, 1 / 80)
        np.testing.assert_allclose(batch.importance_weights(1.0), 1.0)
        batch.ack()
    # Three quarters of the items have three quarters of the turns, none ever behind.
    assert turns == {0: 300, 1: 100}
    assert set(drawn) == set(held[0] + held[1])
    # 20 draws an item: 6 deviations of a binomial's would be 27.
    assert max(drawn.values()) < 47


def test_probabilities_are_those_of_a_plain_model(open_shards: Open) -> None:
    held = [[1, 4, 9], [16, 25], [36, 49, 64, 81, 100]]
    client, _ = open_shards(PRIORITIZED, *held)
    number = sum(len(values) for values in held)
    chance = {
        value: len(values) / number * value**0.5 / sum(one**0.5 for one in values)
        for values in held
        for value in values
    }
    assert sum(chance.values()) == pytest.approx(1.0)
    drawn: Counter[int] = Counter()
    corrected = 0.0
    sampler = client.table("t").sampler(8)
    num_batches = 500
    for _ in range(num_batches):
        batch = sampler.sample(timeout_s=300.0)
        values = batch.columns["value"].tolist()
        drawn.update(values)
        np.testing.assert_allclose(
            batch.probabilities, [chance[value] for value in values], rtol=1e-5
        )
        # What exponent 1 weights by, before the division by a batch's greatest.
        weights = 1 / (batch.table_size * batch.probabilities)
        corrected += float((weights * values).sum())
        batch.ack()
    count = 8 * num_batches
    for value, share in chance.items():
        # Drawn as often as told: 6 deviations of independent draws, which are wider.
        assert abs(drawn[value] - count * share) < 6 * (count * share) ** 0.5
    mean = sum(map(sum, held)) / number
    assert corrected / count == pytest.approx(mean, rel=0.02)


def test_a_writer_goes_where_the_hash_of_its_name_says(open_shards: Open) -> None:
    # The first eight bytes of sha256("actor-0") and so on, as a number, modulo 3.
    names = {"actor-0": 0, "actor-1": 2, "actor-2": 0, "actor-3": 1}
    assert {name: shards.shard_of(name, 3) for name in names} == names
    client, servers = open_shards(REPLAY, [], [], [])
    for value, name in enumerate(names):
        with client.writer(name, "t") as writer:
            writer.append({"value": np.int64(value)})
            writer.insert("t", 1)
    held = [server.table("t").describe()["num_items"] for server in servers]
    assert held == [2, 1, 1]
    assert client.table("t").describe()["num_items"] == 4
    with client.writer("actor-2", "t") as writer:
        assert writer.next_sequence == 1


def test_priorities_and_keys_go_back_to_their_shard(open_shards: Open) -> None:
    client, servers = open_shards(PRIORITIZED, [1, 1, 1], [1, 1, 1])
    table = client.table("t")
    sampler = table.sampler(3, num_ahead=0)
    batches = [sampler.sample(timeout_s=300.0) for _ in range(2)]
    assert [batch.lease for batch in batches] == [0, 1]
    # The second first: leases are the view's own, whatever the servers' are.
    batches[1].ack(np.array([0.0, 0.0, 4.0]))
    batches[0].ack(np.array([0.0, 9.0, 0.0]))
    for _ in range(2):
        batch = sampler.sample(timeout_s=300.0)
        np.testing.assert_allclose(batch.probabilities, [0.5] * 3)
        assert len(set(batch.keys.tolist())) == 1
        batch.ack()
    with pytest.raises(UsageError, match=r"lease \(0\) must be one that is not"):
        batches[0].ack(np.array([1.0, 1.0, 1.0]))
    keys = np.concatenate([batch.keys for batch in batches])
    assert len(set(keys.tolist())) == 6
    table.set_priorities(keys, np.array([5.0, 0.0, 0.0, 5.0, 0.0, 0.0]))
    for _ in range(2):
        batch = sampler.sample(timeout_s=300.0)
        assert set(batch.keys.tolist()) < {int(keys[0]), int(keys[3])}
        batch.ack()
    assert [table.erase(keys[1:]) for _ in range(2)] == [5, 0]
    held = [server.table("t").describe()["num_items"] for server in servers]
    assert sorted(held) == [0, 1]


def test_a_shard_that_waits_holds_nobody_up(open_shards: Open) -> None:
    client, servers = open_shards(QUEUE, [], list(range(5)), list(range(100, 120)))
    sampler = client.table("t").sampler(2)
    drawn = []
    for _ in range(12):
        batch = sampler.sample(timeout_s=300.0)
        drawn += batch.columns["value"].tolist()
        batch.ack()
    assert sorted(drawn) == [0, 1, 2, 3, *range(100, 120)]
    with pytest.raises(
        StoreTimeout, match=r"shard \(tcp://.*\) sample waits: 1 inserts"
    ):
        sampler.sample(timeout_s=0.2)
    # One that was empty from the first takes part once it has items.
    fill(servers[0], [200, 201])
    assert sampler.sample(timeout_s=300.0).columns["value"].tolist() == [200, 201]


def test_commands_go_to_every_shard(open_shards: Open) -> None:
    client, servers = open_shards(REPLAY, [1, 2, 3], [4, 5, 6])
    client.table("t").set_capacity(2)
    held = [server.table("t").describe() for server in servers]
    assert [one["num_items"] for one in held] == [2, 2]
    whole = client.table("t").describe()
    assert whole["num_items"] == 4
    assert whole["missing_shards"] == []


def test_a_lost_shard_leaves_the_others_serving(open_shards: Open) -> None:
    client, servers = open_shards(REPLAY, [1] * 3, [2] * 1)
    lost = servers[1].address
    table = client.table("t")
    sampler = table.sampler(2, num_ahead=0)
    batches = [sampler.sample(timeout_s=300.0) for _ in range(4)]
    assert {batch.columns["value"][0] for batch in batches} == {1, 2}
    with pytest.warns(TengenWarning, match="does not answer; its 1 items are missing"):
        lose(servers[1], client)
    assert client.missing == {lost: 0.25}
    assert table.describe()["missing_shards"] == [lost]
    assert table.describe()["num_items"] == 3
    for batch in batches:
        batch.ack()  # also that of the lost one
    for _ in range(8):
        batch = sampler.sample(timeout_s=300.0)
        assert batch.columns["value"].tolist() == [1, 1]
        assert batch.table_size == 3
        np.testing.assert_allclose(batch.probabilities, 1 / 3)
        batch.ack()
    names = [f"actor-{i}" for i in range(20)]
    there = next(name for name in names if shards.shard_of(name, 2) == 0)
    gone = next(name for name in names if shards.shard_of(name, 2) == 1)
    client.writer(there, "t").close()
    with pytest.raises(RunError, match=r"shard \(tcp://.*\) does not answer"):
        client.writer(gone, "t")
    # It comes back, and is taken in again.
    with Store(StoreConfig.of([REPLAY], memory_bytes=1 << 20, listen=lost)) as back:
        fill(back, [3] * 3)
        until(lambda: not client.missing)
        client.writer(gone, "t").close()
        drawn: set[int] = set()
        until(lambda: drawn.update(sampler.sample(20.0).columns["value"]) or 3 in drawn)


def close_all(server: Store) -> contextlib.AbstractContextManager[object]:
    server.close()
    return contextlib.nullcontext()


def close_the_core(server: Store) -> contextlib.AbstractContextManager[object]:
    """What a client meets that asks before the door is shut too."""
    server._backend.close()
    return contextlib.nullcontext()


def close_and_open_another(server: Store) -> Store:
    address = server.address
    server.close()
    return Store(StoreConfig.of([REPLAY], memory_bytes=1 << 20, listen=address))


@pytest.mark.parametrize("end", [close_all, close_the_core, close_and_open_another])
def test_a_shard_that_closes_is_lost_as_one_that_dies(
    open_shards: Open, monkeypatch, end
) -> None:
    # So that the sampler is the first to hear of it.
    monkeypatch.setattr(shards, "_LOOK_S", 1000.0)
    client, servers = open_shards(REPLAY, [1] * 3, [2] * 3)
    sampler = client.table("t").sampler(2)
    batches = [sampler.sample(timeout_s=300.0) for _ in range(6)]
    assert {batch.columns["value"][0] for batch in batches} == {1, 2}

    def learn() -> None:
        for batch in batches:
            batch.ack()
            sampler.sample(timeout_s=300.0).ack()

    with end(servers[1]):
        with pytest.warns(TengenWarning, match="its 3 items are missing"):
            learn()
        assert sampler.sample(timeout_s=300.0).columns["value"].tolist() == [1, 1]
        assert list(client.missing) == [servers[1].address]


@pytest.mark.parametrize("end", [close_all, close_the_core])
def test_commands_go_on_with_the_others_where_a_shard_is_lost(
    open_shards: Open, monkeypatch, end
) -> None:
    monkeypatch.setattr(shards, "_LOOK_S", 1000.0)
    for call, seen in (
        (lambda table: table.describe()["num_items"], 6),
        (lambda table: table.set_capacity(max_items=2), None),
        (lambda table: table.erase(np.arange(3)), 2),  # of each its first
        (lambda table: len(table._backend.command("sessions", {})), 0),
        (lambda table: len(table._backend.command("checkpoints", {})), 2),
    ):
        client, servers = open_shards(REPLAY, [1] * 3, [2] * 3, [3] * 3)
        lost = servers[0].address
        with end(servers[0]), pytest.warns(TengenWarning, match="3 items are missing"):
            assert call(client.table("t")) == seen
        assert client.table("t").describe()["missing_shards"] == [lost]
        told = [server.table("t").describe() for server in servers[1:]]
        if seen is None:
            assert [one["max_items"] for one in told] == [2, 2]


def test_a_shard_that_closes_takes_no_writer(open_shards: Open) -> None:
    client, servers = open_shards(REPLAY, [])
    servers[0]._backend.close()
    with pytest.raises(RunError, match=r"closing|does not answer"):
        client.writer("a", "t")


def test_a_client_starts_with_those_that_answer(open_shards: Open) -> None:
    _, servers = open_shards(REPLAY, [1, 2], [])
    lost = servers[1].address
    servers[1].close()
    addresses = [server.address or lost for server in servers]
    with pytest.warns(TengenWarning, match="does not answer"):
        client = Store.connect(addresses)
    with client:
        assert list(client.missing) == [lost]
        assert client.table("t").sample(1, timeout_s=300.0).table_size == 2
    servers[0].close()
    with (
        pytest.warns(TengenWarning, match="does not answer"),
        pytest.raises(RunError, match="does not answer"),
    ):
        Store.connect(addresses)


def test_shards_of_other_columns_are_refused(open_shards: Open) -> None:
    _, servers = open_shards(REPLAY, [])
    other = TableConfig(name="t", columns={"value": Column(dtype="float32")})
    with Store(
        StoreConfig.of([other], memory_bytes=1 << 20, listen="127.0.0.1:0")
    ) as wrong:
        with pytest.raises(UsageError, match="with the columns of the others"):
            Store.connect([servers[0].address, wrong.address])
        with pytest.raises(UsageError, match="must be named once"):
            Store.connect([wrong.address, wrong.address])
    with pytest.raises(UsageError, match=r"address \(none\) must be at least one"):
        Store.connect([])
