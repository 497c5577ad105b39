#!/usr/bin/env python3
"""A relay that loses answers: relay.py LISTEN_PORT TARGET_PORT

Passes Kafka frames on, and in place of every fifth answer to a request that writes, closes the connection: the broker has
executed the request, and the client cannot know. The first such answer of a connection is spared, since franz-go takes a
connection that closes on its first request for a refused login. Prints "listening", and at its end (SIGTERM) how many
answers it lost.
"""

import asyncio
import signal
import struct
import sys

# Produce, InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, TxnOffsetCommit
WRITING = {0, 22, 24, 25, 26, 28}
EVERY = 5

seen = lost = 0


def is_lost():
    """Whether this answer to a writing request is one to lose."""
    global seen, lost
    seen += 1
    lost += seen % EVERY == 0
    return seen % EVERY == 0


async def frames(reader):
    try:
        while True:
            size = await reader.readexactly(4)
            yield size, await reader.readexactly(struct.unpack(">i", size)[0])
    except (asyncio.IncompleteReadError, ConnectionError):
        return


async def pass_requests(client, broker, writing):
    async for size, frame in frames(client):
        api, _, correlation = struct.unpack_from(">hhi", frame)
        if api in WRITING:
            writing.add(correlation)
        broker.write(size + frame)
        await broker.drain()


async def pass_answers(broker, client, writing):
    is_first = True
    async for size, frame in frames(broker):
        (correlation,) = struct.unpack_from(">i", frame)
        if correlation in writing:
            if not is_first and is_lost():
                return
            is_first = False
            writing.remove(correlation)
        client.write(size + frame)
        await client.drain()


async def connection(client_reader, client_writer, target):
    broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", target)
    writing = set()
    ways = [
        asyncio.create_task(pass_requests(client_reader, broker_writer, writing)),
        asyncio.create_task(pass_answers(broker_reader, client_writer, writing)),
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in ways:
            task.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        client_writer.close()
        broker_writer.close()


async def main(listen, target):
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await asyncio.start_server(lambda r, w: connection(r, w, target), "127.0.0.1", listen)
    print("listening", flush=True)
    await stop.wait()
    print(f"lost {lost}", flush=True)


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
