// One instance of an application that copies a topic, offsets in the transaction; run by itself, to be killed:
// `copier.js BOOTSTRAP SOURCE TARGET GROUP TRANSACTIONAL_ID`. It ends when it meets what an application cannot mend.
// See ../copy/README.md for its environment.
'use strict'

const { Kafka, logLevel } = require('kafkajs')

const [bootstrap, source, target, groupId, transactionalId] = process.argv.slice(2)
const setting = (name, otherwise) => Number(process.env[name] ?? otherwise)
const sessionTimeout = setting('SESSION_MS', 6000)
const batchSize = setting('BATCH', 40)
// So that it takes a while: somebody has to be killed in the middle.
const pauseMs = setting('PAUSE_MS', 50)

const retry = { initialRetryTime: 50, maxRetryTime: 500, retries: 100 }
const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.WARN, connectionTimeout: 5000, retry })
const producer = kafka.producer({ transactionalId, idempotent: true, maxInFlightRequests: 1, transactionTimeout: 10_000 })
const consumer = kafka.consumer({ groupId, sessionTimeout, heartbeatInterval: 500, rebalanceTimeout: 10_000, maxWaitTimeInMs: 200 })

async function copy(partition, messages) {
  const transaction = await producer.transaction()
  try {
    await transaction.send({ topic: target, messages: messages.map(({ value }) => ({ value, partition })) })
    await new Promise(resolve => setTimeout(resolve, pauseMs))
    const offset = String(Number(messages[messages.length - 1].offset) + 1)
    await transaction.sendOffsets({ consumerGroupId: groupId, topics: [{ topic: source, partitions: [{ partition, offset }] }] })
    await transaction.commit()
  } catch (error) {
    console.log(`aborts: ${error}`)
    if (transaction.isActive()) await transaction.abort()
    throw error
  }
}

async function eachBatch({ batch, resolveOffset, heartbeat, isRunning, isStale }) {
  for (let first = 0; first < batch.messages.length; first += batchSize) {
    // Raises when the group rebalances: nothing may be under way when partitions change hands, since the library sends
    // offsets without saying who it is.
    await heartbeat()
    if (!isRunning() || isStale()) return
    const messages = batch.messages.slice(first, first + batchSize)
    await copy(batch.partition, messages)
    // Not before: what was aborted is to be read again.
    resolveOffset(messages[messages.length - 1].offset)
  }
}

async function main() {
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    console.log(`crashed: ${payload.error}`)
    if (!payload.restart) process.exit(1)
  })
  await producer.connect()
  await consumer.connect()
  await consumer.subscribe({ topic: source, fromBeginning: true })
  await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch })
}

main().catch(error => {
  console.log(`ends: ${error}`)
  process.exit(1)
})
