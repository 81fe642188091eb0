import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { operationKind } from '../../api/kinds/operation/operation.ts'
import type { Operation, OperationReport } from '../../api/kinds/operation/operation-schema.ts'
import { noSuchPath } from '../../api/status-error.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createOperationRegistry, type OperationFollower, type OperationRegistry } from './registry.ts'
import { HEARTBEAT_INTERVAL_MS, type OperationReporter, reportOperations } from './report-operations.ts'

let server: ServerFixture
let registry: OperationRegistry
let follower: OperationFollower
let reporter: OperationReporter
/** The names of the objects with a waiting operation. */
let waitingNames: Set<string>
/** The reports that were sent, including those that failed. */
let reports: OperationReport['spec'][]
/** The error with which the next reports fail. */
let failure: Error | undefined
let isServed: boolean

beforeEach(async () => {
  server = await createServerFixture({ answers: 'stowage' })
  const { clock } = server
  waitingNames = new Set()
  reports = []
  failure = undefined
  isServed = true
  registry = createOperationRegistry({ process: 'p', clock })
  follower = registry.follow({
    component: 'provisioner',
    queue: 'claims',
    stateOf: (key) =>
      waitingNames.has(key)
        ? { key, is: 'stuck', failures: 0, attempts: 1, addedAtMs: clock.nowMs(), isRetry: false, isRoutine: false }
        : undefined,
    subjectOf: (key) => ({
      operation: 'Provision',
      object: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'shop', name: key },
    }),
  })
})
afterEach(async () => {
  await reporter.stop()
  await server.store.close()
})

function startReporter(client: Client = server.client()): void {
  const { clock } = server
  const observedClient = {
    serves: async () => isServed,
    create: (async (kind, object) => {
      reports.push((object as unknown as OperationReport).spec)
      if (failure) throw failure
      return client.create(kind, object)
    }) as Client['create'],
  }
  reporter = reportOperations({ client: observedClient, operations: registry, clock, log: silentLog })
}

function setWaiting(name: string, isWaiting: boolean): void {
  if (isWaiting) waitingNames.add(name)
  else waitingNames.delete(name)
  follower.note(name)
}

const namesOf = (operations: readonly Operation[] = []) => operations.map(({ object }) => object.name)
const listNames = async () => namesOf((await server.client().list(operationKind)).items as Operation[])
const waitUntilListed = (...names: string[]) =>
  server.waitUntil(async () => (await listNames()).join() === names.join(), `operations on ${names.join()}`)

describe('reportOperations', () => {
  it('PLUS-15 reports changes, sends heartbeats only while there are operations, and removes all at the end', async () => {
    startReporter()
    setWaiting('a', true)
    setWaiting('b', true)
    await waitUntilListed('a', 'b')
    setWaiting('a', false)
    await waitUntilListed('b')
    const sentCount = reports.length
    await server.clock.advance(HEARTBEAT_INTERVAL_MS)
    await server.waitUntil(() => reports.length > sentCount, 'a heartbeat')
    expect(reports.at(-1)).toEqual({ process: 'p', isComplete: false, operations: [], removed: [] })
    setWaiting('b', false)
    await waitUntilListed()
    const sentCountAfter = reports.length
    await server.clock.advance(HEARTBEAT_INTERVAL_MS * 3)
    expect(reports.length).toBe(sentCountAfter)
    setWaiting('c', true)
    await waitUntilListed('c')
    await server.advanceUntilSettled(reporter.stop())
    await waitUntilListed()
  })

  it('PLUS-15 sends a complete list in bounded reports to a server that has lost the operations', async () => {
    startReporter()
    for (let index = 0; index < 700; index++) setWaiting(`claim-${index}`, true)
    await server.waitUntil(async () => (await listNames()).length === 700, 'all operations')
    expect(reports.map(({ isComplete, operations = [] }) => [isComplete, operations.length])).toEqual([
      [true, 500],
      [false, 200],
    ])
    server.operations.applyReport('tester', { process: 'p', isComplete: true }) // removes all operations of the process
    const otherServer = await createServerFixture({ answers: 'stowage' })
    reports.length = 0
    await reporter.stop()
    startReporter(otherServer.client())
    setWaiting('claim-0', true)
    await server.waitUntil(
      async () => (await otherServer.client().list(operationKind)).items.length === 700,
      'all operations',
    )
    expect(reports[0]).toMatchObject({ isComplete: true })
    await otherServer.store.close()
  })

  it('PLUS-15 sends the newest state after a report has failed', async () => {
    startReporter()
    failure = new Error('the server cannot be reached')
    setWaiting('a', true)
    await server.waitUntil(() => reports.length === 1, 'a report')
    setWaiting('a', false)
    setWaiting('b', true)
    failure = undefined
    await waitUntilListed('b')
    expect(reports).toHaveLength(2)
  })

  it.each(['is not served', 'is not found'])(
    'PLUS-15 waits ten minutes before the next attempt if the kind %s',
    async (cause) => {
      if (cause === 'is not served') isServed = false
      else failure = noSuchPath()
      startReporter()
      setWaiting('a', true)
      await server.clock.advance(60_000)
      setWaiting('b', true)
      await server.clock.advance(60_000)
      expect(reports.length).toBe(cause === 'is not served' ? 0 : 1)
      isServed = true
      failure = undefined
      await server.clock.advance(600_000)
      await waitUntilListed('a', 'b')
    },
  )

  it('SYS-9 reports with the rules of each component that reports', async () => {
    const { clientOf } = server
    const clients = [
      ...[
        clientOf('attaching'),
        clientOf('binding'),
        clientOf('capacity-cleanup'),
        clientOf('ephemeral'),
        clientOf('lost-volumes'),
        clientOf('node-topology'),
        clientOf('auto-growing'),
      ],
      ...[clientOf('garbage'), clientOf('namespaces'), clientOf('node-lifecycle'), clientOf('protection')],
      ...[clientOf('quota'), clientOf('root-ca'), clientOf('service-accounts'), clientOf('scheduler')],
      clientOf('stateful-sets'),
      ...[clientOf('provisioner'), clientOf('resizer'), clientOf('attacher'), clientOf('node'), clientOf('sdk')],
    ]
    for (const client of clients) {
      startReporter(client)
      setWaiting('a', true)
      await waitUntilListed('a')
      await server.advanceUntilSettled(reporter.stop())
      await waitUntilListed()
    }
  })

  it('PLUS-6 sends activities within a second, again after an error, and the last ones when the process stops', async () => {
    startReporter()
    const sentVolumes = () => reports.map(({ activities = [] }) => activities.map(({ volume }) => volume).join())
    const call = (volume: string) =>
      registry.recordCall({ driver: 'd', method: 'CreateVolume', code: 'OK', volume, durationMs: 1 })
    failure = new Error('the server is gone')
    call('a')
    await server.waitUntil(() => sentVolumes().includes('a'), 'the first report')
    failure = undefined
    call('b')
    await server.waitUntil(() => sentVolumes().includes('a,b'), 'the repeated report')
    call('c')
    await reporter.stop()
    expect(sentVolumes().at(-1)).toBe('c')
  })
})
