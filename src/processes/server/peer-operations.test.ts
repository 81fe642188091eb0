import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { operationKind, SERVER_LABEL } from '../../api/kinds/operation/operation.ts'
import type { Operation } from '../../api/kinds/operation/operation-schema.ts'
import { type PublishedService, publishKubernetesService } from '../../apiserver/kubernetes-service.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import { followPeerOperations } from './peer-operations.ts'

const random = () => 0.5
const ownEndpoint = { address: '10.0.0.1', port: 7443 }
const otherEndpoint = { address: '10.0.0.2', port: 7443 }

let own: ServerFixture
let other: ServerFixture
let otherService: PublishedService
let abort: AbortController
let following: Promise<void>
let connected: string[]

const operation = (name: string, message = ''): Operation => ({
  metadata: { namespace: 'shop', name: `${name}.0123456789`, uid: `uid-${name}`, labels: {} },
  object: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'shop', name },
  component: 'provisioner',
  process: 'p',
  operation: 'Provision',
  phase: 'Waiting',
  message,
})

beforeEach(async () => {
  own = await createServerFixture({ answers: 'stowage' })
  other = await createServerFixture({ answers: 'stowage' })
  abort = new AbortController()
  connected = []
  // Both servers register in a shared store. The test uses the store of the first server.
  const register = (endpoint: typeof ownEndpoint) =>
    publishKubernetesService({
      store: own.store,
      clock: own.clock,
      random,
      log: silentLog,
      endpoint,
      isStoreShared: true,
    })
  await register(ownEndpoint)
  otherService = await register(otherEndpoint)
  following = followPeerOperations({
    client: own.client(),
    operations: own.operations,
    endpoint: ownEndpoint,
    connect(server) {
      connected.push(server)
      return { ...other.client(), close() {} }
    },
    clock: own.clock,
    random,
    log: silentLog,
    signal: abort.signal,
  })
})
afterEach(async () => {
  abort.abort()
  await own.advanceUntilSettled(following)
})

const listOperations = async () =>
  (await own.client().list(operationKind)).items.map(
    ({ object, metadata, message }) => `${object.name} ${metadata.labels?.[SERVER_LABEL] ?? 'own'} ${message ?? ''}`,
  )
const waitUntilListed = (...rows: string[]) =>
  own.waitUntil(async () => (await listOperations()).join() === rows.join(), `operations ${rows.join()}`)

describe('followPeerOperations', () => {
  it('PLUS-15 lists the operations of another server until that server stops', async () => {
    own.operations.applyLocal({ changed: [operation('a')], removed: [] })
    other.operations.applyLocal({ changed: [operation('b'), operation('c')], removed: [] })
    await waitUntilListed('a own ', 'b 10.0.0.2-7443 ', 'c 10.0.0.2-7443 ')
    expect(connected).toEqual(['https://10.0.0.2:7443'])
    other.operations.applyLocal({
      changed: [operation('c', 'later')],
      removed: [{ namespace: 'shop', name: operation('b').metadata.name ?? '' }],
    })
    await waitUntilListed('a own ', 'c 10.0.0.2-7443 later')
    await otherService.stop()
    await waitUntilListed('a own ')
  })

  it('PLUS-15 does not list operations that the other server received from this one', async () => {
    other.operations.applyPeer('10.0.0.1:7443', { changed: [operation('a')], removed: [] })
    other.operations.applyLocal({ changed: [operation('b')], removed: [] })
    await waitUntilListed('b 10.0.0.2-7443 ')
  })

  it('PLUS-15 lists an operation once if both servers report it, and prefers the report of its own server', async () => {
    const name = operation('a').metadata.name ?? ''
    other.operations.applyLocal({ changed: [operation('a', 'old')], removed: [] })
    await waitUntilListed('a 10.0.0.2-7443 old')
    own.operations.applyLocal({ changed: [operation('a', 'new')], removed: [] })
    await waitUntilListed('a own new')
    other.operations.applyLocal({ changed: [operation('a', 'older')], removed: [] })
    own.operations.applyLocal({ changed: [operation('b')], removed: [] })
    await waitUntilListed('a own new', 'b own ')
    await own.clock.advance(1_000)
    own.operations.applyLocal({ changed: [], removed: [{ namespace: 'shop', name }] })
    await waitUntilListed('a 10.0.0.2-7443 older', 'b own ')
  })
})
