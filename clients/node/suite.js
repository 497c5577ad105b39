// Exactly-once, as kafkajs sees it: produce, transactions, fencing, timeout, offsets, takeover.
'use strict'

const { randomUUID } = require('node:crypto')
const { CompressionTypes, Kafka, logLevel } = require('kafkajs')
const { isKafka, check, stricter, equal, raises, awaitCondition, eventually } = require('./checks')
const { COMMITTED, UNCOMMITTED, end, read } = require('./reader')

const RECORDS = 20_000
const ABORT_LIMIT_MS = 25_000
const RUN = randomUUID().slice(0, 8)

const client = bootstrap => new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING, connectionTimeout: 5000 })
const kafka = client(process.env.BOOTSTRAP)
const admin = kafka.admin()

const name = what => `node-${RUN}-${what}`
const range = count => [...Array(count).keys()]
const messages = (values, partition) => values.map(value => ({ value, partition }))

async function createTopic(what, numPartitions) {
  const topic = name(what)
  await admin.createTopics({ topics: [{ topic, numPartitions, replicationFactor: 1 }] })
  return topic
}

async function withProducer(settings, body, from = kafka) {
  const producer = from.producer({ idempotent: true, maxInFlightRequests: 1, ...settings })
  await producer.connect()
  try {
    return await body(producer)
  } finally {
    await producer.disconnect()
  }
}

async function idempotentProduce(partitions) {
  const topic = await createTopic(`idempotent-${partitions}`, partitions)
  await withProducer({}, async producer => {
    for (let first = 0; first < RECORDS; first += 1000) {
      const batch = range(1000).map(i => ({ value: String(first + i), partition: (first + i) % partitions }))
      await producer.send({ topic, acks: -1, messages: batch })
    }
  })
  for (const p of range(partitions)) {
    const expected = range(RECORDS).filter(i => i % partitions === p).map(String)
    equal(expected, await read(topic, p, UNCOMMITTED), `${topic}-${p}`)
  }
}

/** Small batches, so that many answers can get lost, each a duplicate for the broker to recognise. */
async function idempotentProduceWithLostAnswers(relayed) {
  const relayedKafka = client(relayed)
  const topic = name('lost-answers')
  const relayedAdmin = relayedKafka.admin()
  await relayedAdmin.connect()
  await relayedAdmin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }] })
  await relayedAdmin.disconnect()
  const values = range(RECORDS).map(String)
  const sendAll = async producer => {
    for (let first = 0; first < RECORDS; first += 500) {
      await producer.send({ topic, acks: -1, messages: messages(values.slice(first, first + 500), 0) })
    }
  }
  await withProducer({ retry: { initialRetryTime: 50, retries: 20 } }, sendAll, relayedKafka)
  equal(values, await read(topic, 0, UNCOMMITTED, relayed), topic)
}

/** S1: after a batch of which one partition failed, the library takes the other one's numbers again. */
async function numbersTakenAgain() {
  const [topic, small] = [await createTopic('taken-again', 1), name('small')]
  const configEntries = [{ name: 'max.message.bytes', value: '1000' }]
  await admin.createTopics({ topics: [{ topic: small, numPartitions: 1, replicationFactor: 1, configEntries }] })
  await withProducer({}, async producer => {
    const topicMessages = [
      { topic, messages: messages(['A'], 0) },
      { topic: small, messages: messages(['x'.repeat(5000)], 0) },
    ]
    await raises('KafkaJSProtocolError', 'MESSAGE_TOO_LARGE', () => producer.sendBatch({ acks: -1, topicMessages }), 'batch')
    equal(['A'], await read(topic, 0, UNCOMMITTED), 'what the batch left')
    const send = producer.send({ topic, acks: -1, messages: messages(['B'], 0) })
    const isAcknowledged = await send.then(() => true, () => false)
    const expected = isAcknowledged ? ['A', 'B'] : ['A']
    equal(expected, await read(topic, 0, UNCOMMITTED), 'what was acknowledged is there')
  })
}

async function everyCompression() {
  for (const type of ['None', 'GZIP']) {
    const topic = await createTopic(`compression-${type}`, 1)
    const values = range(1000).map(i => `${type} ${i}`)
    await withProducer({}, producer =>
      producer.send({ topic, acks: -1, compression: CompressionTypes[type], messages: messages(values, 0) })
    )
    equal(values, await read(topic, 0, UNCOMMITTED), type)
  }
}

async function transactionsOverThreeTopics() {
  const topics = [await createTopic('a', 3), await createTopic('b', 3), await createTopic('c', 3)]
  const all = []
  const committed = []
  await withProducer({ transactionalId: name('transactions') }, async producer => {
    for (const number of range(12)) {
      const values = range(5).map(i => `${number}.${i}`)
      const transaction = await producer.transaction()
      await transaction.sendBatch({
        topicMessages: topics.map(topic => ({ topic, messages: range(3).flatMap(p => messages(values, p)) })),
      })
      all.push(...values)
      if (number % 3 === 1) {
        await transaction.abort()
      } else {
        await transaction.commit()
        committed.push(...values)
      }
    }
  })
  for (const topic of topics) {
    for (const p of range(3)) {
      equal(committed, await read(topic, p, COMMITTED), `${topic}-${p} read_committed`)
      equal(all, await read(topic, p, UNCOMMITTED), `${topic}-${p} read_uncommitted`)
    }
  }
}

/** A begins and writes, B takes the transactional id over, A tries to go on, B commits: only B is seen. */
async function fencingWalk(what, zombieStep) {
  const topic = await createTopic(what, 2)
  const settings = { transactionalId: topic }
  await withProducer(settings, a =>
    withProducer(settings, async b => {
      const zombie = await a.transaction()
      await zombie.send({ topic, messages: messages(['of A'], 0) })
      const successor = await b.transaction() // the first one of a producer initialises it
      equal(2, await end(topic, 0, COMMITTED), "last stable offset behind A's record and its abort marker")
      await zombieStep(zombie, topic)
      await successor.send({ topic, messages: messages(['of B'], 0) })
      await successor.commit()
    })
  )
  equal(['of B'], await read(topic, 0, COMMITTED), 'read_committed')
  equal(['of A', 'of B'], await read(topic, 0, UNCOMMITTED), 'read_uncommitted')
  equal([], await read(topic, 1, UNCOMMITTED), 'what the zombie wrote elsewhere')
}

const raisesFenced = (body, what) => raises('KafkaJSProtocolError', 'INVALID_PRODUCER_EPOCH', body, what)

/** Partition 0 is in the zombie's transaction; partition 1 was never written by anyone. */
const fencedOnSend = (what, partition) =>
  fencingWalk(`fenced-${what}`, (zombie, topic) =>
    raisesFenced(() => zombie.send({ topic, messages: messages(['of the zombie'], partition) }), 'send')
  )

const fencedOnCommit = () =>
  fencingWalk('fenced-commit', zombie => raisesFenced(() => zombie.commit(), 'commit'))

const fencedOnSendOffsets = () =>
  fencingWalk('fenced-offsets', (zombie, topic) =>
    raisesFenced(() => sendOffset(zombie, topic, topic, 1), 'sendOffsets')
  )

function sendOffset(transaction, group, topic, offset) {
  const topics = [{ topic, partitions: [{ partition: 0, offset: String(offset) }] }]
  return transaction.sendOffsets({ consumerGroupId: group, topics })
}

async function transactionTimesOut() {
  const topic = await createTopic('timeout', 1)
  await withProducer({ transactionalId: topic, transactionTimeout: 1000 }, async producer => {
    const transaction = await producer.transaction()
    await transaction.send({ topic, messages: messages(['too late'], 0) })
    equal(0, await end(topic, 0, COMMITTED), 'last stable offset while the transaction is open')
    const isAborted = async () => (await end(topic, 0, COMMITTED)) === 2
    await awaitCondition(ABORT_LIMIT_MS, isAborted, 'abort by the broker')
    await raisesFenced(() => transaction.commit(), 'commit after the timeout')
  })
  equal([], await read(topic, 0, COMMITTED), 'read_committed')
}

async function offsetsInATransaction() {
  const group = await createTopic('offsets', 1)
  const isAt = async offset => {
    const [fetched] = await admin.fetchOffsets({ groupId: group, topics: [group] })
    return Number(fetched.partitions[0].offset) === offset
  }
  await withProducer({ transactionalId: group }, async producer => {
    const first = await producer.transaction()
    await sendOffset(first, group, group, 5)
    await first.commit()
    await eventually(() => isAt(5), 'offset after the commit')
    const second = await producer.transaction()
    await sendOffset(second, group, group, 9)
    await second.abort()
    await eventually(() => isAt(5), 'offset after an abort')
  })
}

async function takeoverInOneRequest() {
  const elapsed = []
  for (const round of range(3)) elapsed.push(await takeover(round))
  if (Math.min(...elapsed) >= 100) throw new Error(`three takeovers took ${elapsed} ms`)
}

async function takeover(round) {
  const topic = await createTopic(`takeover-${round}`, 3)
  const settings = { transactionalId: topic }
  return withProducer(settings, a =>
    withProducer(settings, async b => {
      const open = await a.transaction()
      await open.send({ topic, messages: range(3).flatMap(p => messages(['of A'], p)) })
      let requests = 0
      b.on(b.events.REQUEST, ({ payload }) => (requests += payload.apiName === 'InitProducerId' ? 1 : 0))
      const start = Date.now()
      await b.transaction()
      const elapsed = Date.now() - start
      equal(1, requests, 'InitProducerId requests of the takeover')
      for (const p of range(3)) {
        equal(2, await end(topic, p, COMMITTED), 'last stable offset right after the takeover')
      }
      return elapsed
    })
  )
}

async function main() {
  await admin.connect()
  await check('idempotent_produce_to_one_partition', () => idempotentProduce(1))
  await check('idempotent_produce_to_three_partitions', () => idempotentProduce(3))
  await check('every_compression', everyCompression)
  await stricter('numbers_taken_again', 'it acknowledges the second record and stores it nowhere', numbersTakenAgain)
  await check('transactions_over_three_topics', transactionsOverThreeTopics)
  await check('fenced_on_send', () => fencedOnSend('send', 0))
  await check('fenced_on_send_to_an_untouched_partition', () => fencedOnSend('untouched', 1))
  await check('fenced_on_commit', fencedOnCommit)
  await check('fenced_on_send_offsets', fencedOnSendOffsets)
  await check('transaction_times_out', transactionTimesOut)
  await check('offsets_in_a_transaction', offsetsInATransaction)
  await stricter(
    'takeover_in_one_request',
    'it answers CONCURRENT_TRANSACTIONS until the markers are written',
    takeoverInOneRequest
  )
  const relayed = process.env.RELAYED
  if (relayed) await check('idempotent_produce_with_lost_answers', () => idempotentProduceWithLostAnswers(relayed))
  else console.log('skipped lost_answers: there is no relay')
  await admin.disconnect()
}

main()
