// Runs named checks and prints one line for each.
'use strict'

const { isDeepStrictEqual, inspect } = require('node:util')

// Whether the broker is Apache Kafka, whose own behaviour some expectations go beyond.
const isKafka = process.env.PEER === 'kafka'

const shorten = value => inspect(value, { maxArrayLength: 20, breakLength: Infinity })
const pause = ms => new Promise(resolve => setTimeout(resolve, ms))

async function check(name, body) {
  const start = Date.now()
  try {
    await body()
    console.log(`ok ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`)
  } catch (failure) {
    process.exitCode = 1
    console.log(`FAILED ${name}: ${failure.message}\n${failure.stack}`)
  }
}

/** A check that Apache Kafka fails, for the reason given: run on Semel only. */
async function stricter(name, reason, body) {
  if (isKafka) console.log(`skipped ${name}: stricter than Kafka: ${reason}`)
  else await check(name, body)
}

function equal(expected, seen, what) {
  if (!isDeepStrictEqual(expected, seen)) {
    throw new Error(`${what}: expected ${shorten(expected)}, saw ${shorten(seen)}`)
  }
}

/** The body must reject with kafkajs's error of this class name and, as it calls a broker's error code, this type. */
async function raises(name, type, body, what) {
  let seen
  try {
    await body()
  } catch (error) {
    seen = error
  }
  equal([name, type], [seen?.name, seen?.type], `${what} (${seen?.message})`)
}

/** Asks again until the condition holds; for what the broker does in its own time. */
async function awaitCondition(limitMs, condition, what) {
  const end = Date.now() + limitMs
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`${what}: not within ${limitMs} ms`)
    await pause(50)
  }
}

/** What Kafka does some time after its answer, and Semel before it: awaited there, asserted here. */
async function eventually(condition, what) {
  if (isKafka) await awaitCondition(10_000, condition, what)
  else equal(true, await condition(), `${what} when the answer was here`)
}

module.exports = { isKafka, check, stricter, equal, raises, awaitCondition, eventually }
