// Reads a partition without a group. kafkajs has no assign(), so this drives its inner parts (pinned to 2.2.4): its own
// Fetch and ListOffsets requests, record decoding and filter of aborted transactions.
'use strict'

const Batch = require('kafkajs/src/consumer/batch')
const Cluster = require('kafkajs/src/cluster')
const defaultSocketFactory = require('kafkajs/src/network/socketFactory')
const { createLogger, LEVELS } = require('kafkajs/src/loggers')
const { eventually } = require('./checks')

const COMMITTED = 1
const UNCOMMITTED = 0

async function withCluster(topic, isolationLevel, body, bootstrap = process.env.BOOTSTRAP) {
  const cluster = new Cluster({
    logger: createLogger({ level: LEVELS.NOTHING, logCreator: () => () => {} }),
    socketFactory: defaultSocketFactory(),
    brokers: [bootstrap],
    connectionTimeout: 5000,
    isolationLevel,
  })
  await cluster.connect()
  try {
    await cluster.addTargetTopic(topic)
    return await body(cluster)
  } finally {
    await cluster.disconnect()
  }
}

async function endOf(cluster, topic, partition) {
  const [listed] = await cluster.fetchTopicsOffset([{ topic, partitions: [{ partition }], fromBeginning: false }])
  return Number(listed.partitions[0].offset)
}

/** The last stable offset (COMMITTED) or the high watermark (UNCOMMITTED). */
function end(topic, partition, isolationLevel, bootstrap) {
  return withCluster(topic, isolationLevel, cluster => endOf(cluster, topic, partition), bootstrap)
}

/** All values of one partition up to its end as that isolation sees it. */
async function read(topic, partition, isolationLevel, bootstrap) {
  if (isolationLevel === COMMITTED) {
    const hasAllMarkers = async () =>
      (await end(topic, partition, COMMITTED, bootstrap)) === (await end(topic, partition, UNCOMMITTED, bootstrap))
    await eventually(hasAllMarkers, 'all markers written')
  }
  const readAll = async cluster => {
    const until = await endOf(cluster, topic, partition)
    const [nodeId] = Object.keys(cluster.findLeaderForPartitions(topic, [partition]))
    const broker = await cluster.findBroker({ nodeId })
    const values = []
    for (let offset = 0; offset < until; ) {
      const batch = await fetch(broker, topic, partition, offset, isolationLevel)
      if (batch.isEmptyIncludingFiltered()) throw new Error(`${topic}-${partition}: nothing at ${offset} of ${until}`)
      values.push(...batch.messages.map(message => message.value.toString()))
      offset = Number(batch.lastOffset()) + 1
    }
    return values
  }
  return withCluster(topic, isolationLevel, readAll, bootstrap)
}

async function fetch(broker, topic, partition, offset, isolationLevel) {
  const partitions = [{ partition, fetchOffset: String(offset), maxBytes: 1 << 20 }]
  const { responses } = await broker.fetch({ maxWaitTime: 1000, isolationLevel, topics: [{ topic, partitions }] })
  return new Batch(topic, String(offset), responses[0].partitions[0])
}

module.exports = { COMMITTED, UNCOMMITTED, end, read }
