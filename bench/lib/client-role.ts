// Runs a client of the library in a separate process. The process either runs the API server itself, which the client then
// calls directly, or connects to another process.
//   serve               runs the API server on a store with claims
//   connect             connects to the process that runs the server
//   create              callers create claims, each caller one after the other
//   put                 callers write values to the store of this process
//   change              changes claims in the store of this process as fast as possible
//   follow              a watched cache counts the changes it receives
//   measureMemory       measures the heap that a full cache adds per claim
//   measurePairMemory   measures the heap that full caches add per claim with its volume
import { join } from 'node:path'
import type { Kind, KubeObject } from '../../src/api/kind.ts'
import { persistentVolumeClaimKind as claimKind } from '../../src/api/kinds/claim/claim.ts'
import { persistentVolumeKind as volumeKind } from '../../src/api/kinds/volume/volume.ts'
import { inProcessClient, objectKey } from '../../src/apiserver/index.ts'
import { systemClock, systemRandom } from '../../src/base/clock.ts'
import { type Client, httpClient } from '../../src/client/index.ts'
import { type Cache, createCache } from '../../src/runtime/index.ts'
import { openLmdbStore, openMemoryStore, type Store } from '../../src/store/index.ts'
import { createServerOnStore } from '../../test/helpers/server-on-store.ts'
import { type CallersOptions, type Calls, runCallers } from './callers.ts'
import { boundClaim, boundVolume, buildClaim } from './claims.ts'

export type ClientJob =
  | {
      readonly do: 'serve'
      readonly store: 'memory' | 'lmdb'
      readonly dir: string
      readonly claims: number
      /** Also store the volume of each claim. */
      readonly withVolumes?: boolean
    }
  | { readonly do: 'connect'; readonly to: ServerAddress }
  | ({ readonly do: 'create' } & CallersOptions)
  /** Writes to the store alone, with values as large as the created claims. */
  | ({ readonly do: 'put' } & CallersOptions)
  | { readonly do: 'change'; readonly changes: number }
  /** `inThisProcess`: this process also makes the changes. */
  | { readonly do: 'follow'; readonly changes: number; readonly inThisProcess: boolean }
  | { readonly do: 'measureMemory' }
  /** Claims and volumes together. */
  | { readonly do: 'measurePairMemory' }

/** Address and credentials of a serving process. */
interface ServerAddress {
  readonly server: string
  readonly ca: string
  readonly token: string
}

export interface ClientResults {
  readonly serve: ServerAddress
  readonly connect: undefined
  readonly create: Calls & { readonly objectBytes: number }
  readonly put: Calls
  readonly change: undefined
  readonly follow: Calls
  readonly measureMemory: { readonly bytesPerClaim: number; readonly fillMs: number }
  readonly measurePairMemory: { readonly bytesPerPair: number; readonly jsonBytes: number }
}

const USER = { name: 'system:bench', groups: ['system:masters'] }
const NAMESPACE = 'default'
const CREATED_NAMESPACE = 'kube-public' // not watched by the caches
const CLAIMS_PER_TRANSACTION = 500
const clock = systemClock()

let client: Client
let store: Store
let storedClaimCount = 0
let objectBytes = 0
let numbersUsed = 0

export async function runClient(job: ClientJob): Promise<ClientResults[ClientJob['do']]> {
  switch (job.do) {
    case 'serve':
      return serve(job)
    case 'connect':
      client = httpClient({ connection: { ...job.to, credentials: async () => ({ token: job.to.token }) }, clock })
      return undefined
    case 'create':
      return { ...(await runCallers(job, createClaim)), objectBytes }
    case 'put':
      return runCallers(job, putValue)
    case 'change':
      return changeClaims(job.changes)
    case 'follow':
      return follow(job)
    case 'measureMemory':
      return measureMemory()
    case 'measurePairMemory':
      return measurePairMemory()
  }
}

async function serve({
  store: storeKind,
  dir,
  claims,
  withVolumes = false,
}: Extract<ClientJob, { do: 'serve' }>): Promise<ServerAddress> {
  store =
    storeKind === 'memory' ? await openMemoryStore({ clock }) : await openLmdbStore({ dir: join(dir, 'store'), clock })
  const { server, pki, listen } = await createServerOnStore(store, { dir, clock })
  for (let firstNumber = 0; firstNumber < claims; firstNumber += CLAIMS_PER_TRANSACTION) {
    const count = Math.min(CLAIMS_PER_TRANSACTION, claims - firstNumber)
    await store.transact(() => Array.from({ length: count }, (_, offset) => putClaim(firstNumber + offset)))
    if (withVolumes)
      await store.transact(() => Array.from({ length: count }, (_, offset) => putVolume(firstNumber + offset)))
  }
  storedClaimCount = claims
  const { port } = await listen()
  client = inProcessClient(server.objects, USER)
  return { server: `https://127.0.0.1:${port}`, ca: pki.caCert, token: pki.admin.token! }
}

/** The name depends on the number only, so a change keeps the key and the uid. */
function putClaim(number: number, change = 0) {
  const claim = boundClaim({ number, namespace: NAMESPACE, change })
  return { put: objectKey(claimKind, NAMESPACE, claim.name), value: claim.value }
}

function putVolume(number: number) {
  const volume = boundVolume(number, NAMESPACE)
  return { put: objectKey(volumeKind, '', volume.name), value: volume.value }
}

async function createClaim(): Promise<void> {
  const { metadata, spec } = buildClaim(uniqueName())
  const claim = { metadata: { ...metadata, namespace: CREATED_NAMESPACE }, spec } as KubeObject
  const createdClaim = await client.create<KubeObject>(claimKind, claim)
  if (objectBytes === 0) objectBytes = Buffer.byteLength(JSON.stringify(createdClaim))
}

async function putValue(): Promise<void> {
  const write = { put: `bench/${uniqueName()}`, value: Buffer.alloc(objectBytes, 'x') }
  await store.transact(() => [write])
}

const uniqueName = (): string => `claim-${process.pid}-${String(++numbersUsed).padStart(10, '0')}`

async function changeClaims(changes: number): Promise<undefined> {
  const writes = Array.from({ length: changes }, (_, offset) => putClaim(offset % storedClaimCount, ++numbersUsed))
  await Promise.all(writes.map((write) => store.transact(() => [write])))
}

/** Counts the changes that reach a cache. */
interface Follower {
  waitForChanges(changes: number): Promise<Calls>
}

let follower: Promise<Follower> | undefined

/** Waits for changes in a cache. With 0 changes it only starts the cache. */
async function follow({ changes, inThisProcess }: Extract<ClientJob, { do: 'follow' }>): Promise<Calls> {
  follower ??= startFollower()
  const { waitForChanges } = await follower
  if (changes === 0) return { count: 0, seconds: 0 }
  const [calls] = await Promise.all([waitForChanges(changes), inThisProcess ? changeClaims(changes) : undefined])
  return calls
}

async function startFollower(): Promise<Follower> {
  const cache = await fillCache()
  let firstMs = 0
  let lastMs = 0
  let count = 0
  let check = () => {}
  cache.subscribe({
    updated() {
      lastMs = performance.now()
      if (++count === 1) firstMs = lastMs
      check()
    },
  })
  return {
    /** The first change starts the clock and is not counted. */
    async waitForChanges(changes) {
      await new Promise<void>((resolve) => {
        check = () => count >= changes && resolve()
        check()
      })
      count = 0
      const { relists } = cache.stats()
      if (relists !== 1) throw new Error(`the cache listed ${relists} times; the figure would include reconnects`)
      return { count: changes - 1, seconds: (lastMs - firstMs) / 1000 }
    },
  }
}

async function fillCache(kind: Kind = claimKind): Promise<Cache<KubeObject>> {
  const { signal } = new AbortController()
  const cache = createCache({
    client,
    kind,
    namespace: kind.namespaced ? NAMESPACE : undefined,
    clock,
    random: systemRandom(),
  })
  void cache.run(signal)
  await cache.whenSynced(signal)
  return cache
}

/** Measures a cache after a complete list, which fills the internal caches of the client and the server. */
async function measureMemory(): Promise<ClientResults['measureMemory']> {
  for (let page = await client.list(claimKind, { namespace: NAMESPACE, limit: CLAIMS_PER_TRANSACTION }); ; ) {
    if (!page.continueToken) break
    const { continueToken } = page
    page = await client.list(claimKind, { namespace: NAMESPACE, limit: CLAIMS_PER_TRANSACTION, continueToken })
  }
  const beforeBytes = await heapBytes()
  const startMs = performance.now()
  const cache = await fillCache()
  const fillMs = performance.now() - startMs
  const addedBytes = (await heapBytes()) - beforeBytes
  return { bytesPerClaim: addedBytes / cache.size, fillMs }
}

async function measurePairMemory(): Promise<{ bytesPerPair: number; jsonBytes: number }> {
  const beforeBytes = await heapBytes()
  const [claims, volumes] = [await fillCache(), await fillCache(volumeKind)]
  const addedBytes = (await heapBytes()) - beforeBytes
  if (claims.size !== volumes.size) throw new Error(`${claims.size} claims, but ${volumes.size} volumes`)
  const jsonBytes = Buffer.byteLength(JSON.stringify([claims.list()[0], volumes.list()[0]]))
  return { bytesPerPair: addedBytes / claims.size, jsonBytes }
}

/**
 * Returns the size of heap and external memory after garbage collection. Needs --expose-gc, and collects several times,
 * because streams release their buffers late.
 */
async function heapBytes(): Promise<number> {
  for (let turn = 0; turn < 3; turn++) {
    globalThis.gc?.()
    await clock.sleep(50)
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
