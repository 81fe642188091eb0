// Tests quotas under contention: 64 clients create, expand, change and delete claims for the last free units, on every
// store, and on etcd through two servers. A quota must never be exceeded, its usage must equal the sum over its claims after
// every round, and a free unit must be granted at rest.
// QUOTA_ROUNDS=1000 runs the long form.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { allGatesOn } from '../src/api/feature-gates.ts'
import { persistentVolumeClaimKind } from '../src/api/kinds/claim/claim.ts'
import { ALL_KINDS } from '../src/api/kinds/index.ts'
import { namespaceKind } from '../src/api/kinds/namespace/namespace.ts'
import { resourceQuotaKind } from '../src/api/kinds/resource-quota/resource-quota.ts'
import { storageClassKind } from '../src/api/kinds/storage-class/storage-class.ts'
import { ApiError } from '../src/api/status-error.ts'
import { createApiServer, createBuiltIns, inProcessClient, versionInfo } from '../src/apiserver/index.ts'
import { systemClock, systemRandom } from '../src/base/clock.ts'
import { silentLog } from '../src/base/log.ts'
import type { Client } from '../src/client/index.ts'
import { openEtcdStore, openLmdbStore, openMemoryStore, type Store } from '../src/store/index.ts'
import { etcdSkipReason, startEtcd } from './helpers/etcd.ts'

const CLIENTS = 64
const roundCount = (defaultRounds: number) => Number(process.env.QUOTA_ROUNDS ?? defaultRounds)
const NAMESPACE = 'race'
const GIB = 1024 ** 3
const clock = systemClock()

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of cleanups.splice(0).reverse()) await close()
})

function createClient(store: Store): { client: Client; ready: Promise<unknown> } {
  const server = createApiServer({
    store,
    clock,
    random: systemRandom(),
    log: silentLog,
    kinds: ALL_KINDS,
    gates: allGatesOn,
    authenticator: { authenticate: () => ({ is: 'unknown' }) as never, authenticateToken: () => undefined },
    authorizer: { authorize: () => ({ allowed: true }) },
    version: versionInfo(),
    trackManagedFields: false,
  })
  return {
    client: inProcessClient(server.objects, { name: 'racer', groups: [] }),
    ready: createBuiltIns(server.objects),
  }
}

/** Returns a seeded generator of integers from 0 to n - 1. */
function createDice(seed: number): (n: number) => number {
  let state = seed * 7_919 + 1
  return (n) => {
    state = (state * 48_271) % 2_147_483_647
    return Math.floor((state / 2_147_483_647) * n)
  }
}

const QUOTAS = {
  all: { hard: { persistentvolumeclaims: '12', 'requests.storage': '20Gi', 'requests.iops': '500' } },
  slow: { hard: { 'slow.storageclass.storage.k8s.io/requests.storage': '6Gi', 'limits.iops': '600' } },
  gold: byClass('In', ['gold']),
  none: byClass('DoesNotExist'),
}

function byClass(operator: string, values?: string[]) {
  const requirement = { scopeName: 'VolumeAttributesClass', operator, ...(values ? { values } : {}) }
  return {
    hard: { 'count/persistentvolumeclaims': '5', 'requests.storage': '9Gi' },
    scopeSelector: { matchExpressions: [requirement] },
  }
}

/** Returns the usage of a quota, in bytes, iops and claims, computed from the claims. Their sizes must be in Gi. */
function sumUsage(claims: readonly any[], spec: any): Record<string, number> {
  const sizeOf = (amount: string | undefined) => (amount ? Number(/^(\d+)Gi$/.exec(amount)?.[1]) * GIB : 0)
  const selectedClaims = claims.filter(({ spec: claim, status }) => {
    const [requirement] = spec.scopeSelector?.matchExpressions ?? []
    if (!requirement) return true
    const names = [claim.volumeAttributesClassName, status.currentVolumeAttributesClassName].filter(Boolean)
    return requirement.operator === 'In' ? names.includes('gold') : names.length === 0
  })
  const storage = (claim: any) =>
    Math.max(sizeOf(claim.spec.resources.requests.storage), sizeOf(claim.spec.allocatedResources?.storage))
  const iops = selectedClaims.map(({ spec: claim }) => Number(claim.resources.requests.iops ?? 0))
  const sum = (amounts: number[]) => amounts.reduce((total, amount) => total + amount, 0)
  const usage: Record<string, number> = {
    persistentvolumeclaims: selectedClaims.length,
    'count/persistentvolumeclaims': selectedClaims.length,
    'requests.storage': sum(selectedClaims.map(storage)),
    'slow.storageclass.storage.k8s.io/requests.storage': sum(
      selectedClaims.filter(({ spec: claim }) => claim.storageClassName === 'slow').map(storage),
    ),
    'limits.iops': sum(iops),
    'requests.iops': Math.max(0, ...iops),
  }
  return Object.fromEntries(Object.keys(spec.hard).map((key) => [key, usage[key] ?? Number.NaN]))
}

const parseAmount = (amount: string): number => {
  const [, digits, unit] = /^(\d+)(Gi|Mi|Ki|k|)$/.exec(amount) ?? []
  const factors: Record<string, number> = { Gi: GIB, Mi: 1024 ** 2, Ki: 1024, k: 1000, '': 1 }
  return Number(digits) * (factors[unit ?? ''] ?? Number.NaN)
}
const parseAmounts = (amounts: Record<string, string> = {}) =>
  Object.fromEntries(Object.entries(amounts).map(([key, amount]) => [key, parseAmount(amount)]))

async function raceClients(clients: readonly Client[], store: Store, count: number): Promise<Record<string, number>> {
  const [firstClient] = clients as [Client]
  const totals: Record<string, number> = {}
  const exceededQuotas: string[] = []
  for (const name of ['slow', 'fast']) {
    const object = { metadata: { name }, provisioner: 'd.example.com', allowVolumeExpansion: true }
    await firstClient.create(storageClassKind, object as never)
  }
  await firstClient.create(namespaceKind, { metadata: { name: NAMESPACE } })
  store.watch({
    prefix: `core/resourcequotas/${NAMESPACE}/`,
    afterRevision: store.revision,
    onEvents: (events) => {
      for (const { entry } of events) if (entry) checkQuota(JSON.parse(Buffer.from(entry.value).toString()))
    },
    onEnd: () => {},
  })
  for (const [name, spec] of Object.entries(QUOTAS)) await createQuota(firstClient, name, spec)
  for (let round = 0; round < count; round++) await runRound(round)
  expect(exceededQuotas).toEqual([])
  return totals

  function checkQuota({ metadata, spec, status }: any): void {
    const bounds = parseAmounts(spec.hard)
    for (const [key, amount] of Object.entries(parseAmounts(status?.used))) {
      if (amount > (bounds[key] ?? 0)) exceededQuotas.push(`${metadata.name}: ${key}=${amount}`)
    }
  }

  async function runRound(round: number): Promise<void> {
    const claims = (await firstClient.list(persistentVolumeClaimKind, { namespace: NAMESPACE })).items
    const names = claims.map(({ metadata }) => metadata.name ?? '')
    const racers = Array.from({ length: CLIENTS }, async (_, index) => {
      const roll = createDice(round * CLIENTS + index)
      const client = clients[index % clients.length] as Client
      const outcome = await runRandomAction(client, roll, `r${round}-${index}`, names)
      totals[outcome] = (totals[outcome] ?? 0) + 1
    })
    // Concurrently, an administrator creates a quota.
    const newQuota = `new-${round}`
    const admin = clients.at(-1) as Client
    const spec = { hard: { persistentvolumeclaims: '12', 'requests.storage': '20Gi' } }
    racers.push(createQuota(admin, newQuota, spec).then(() => {}))
    await Promise.all(racers)
    await check(round)
    await checkFreeUnits(round)
    await admin.delete(resourceQuotaKind, { namespace: NAMESPACE, name: newQuota })
  }

  async function check(round: number): Promise<any[]> {
    const readObjects = async (plural: string) =>
      (await store.list({ prefix: `core/${plural}/${NAMESPACE}/` })).entries.map(({ value }) =>
        JSON.parse(Buffer.from(value).toString()),
      )
    const claims = await readObjects('persistentvolumeclaims')
    for (const { metadata, spec, status } of await readObjects('resourcequotas')) {
      if (!status?.used) continue // a new quota without usage
      expect(parseAmounts(status.used), `round ${round}, quota ${metadata.name}`).toEqual(sumUsage(claims, spec))
    }
    return claims
  }

  async function checkFreeUnits(round: number): Promise<void> {
    const claims = await check(round)
    const usageBefore = [QUOTAS.all, QUOTAS.none].map(({ hard, ...spec }) => ({
      hard: parseAmounts(hard as never),
      used: sumUsage(claims, { hard, ...spec }),
    }))
    const isFree = usageBefore.every(({ hard, used }) =>
      Object.entries(used).every(([key, amount]) => {
        if (key === 'requests.iops') return true
        return amount + (key === 'requests.storage' ? GIB : 1) <= (hard[key] ?? 0)
      }),
    )
    const client = clients[round % clients.length] as Client
    const outcome = await describeOutcome(createClaim(client, `free-${round}`, { storage: '1Gi' }))
    expect(outcome, `round ${round}: ${JSON.stringify(usageBefore)}`).toBe(isFree ? 'succeeded' : 'over quota')
    await check(round)
    if (isFree) await deleteClaim(client, `free-${round}`)
  }
}

const createQuota = (client: Client, name: string, spec: object): Promise<unknown> =>
  client.create(resourceQuotaKind, { metadata: { namespace: NAMESPACE, name }, spec } as never)

async function createClaim(client: Client, name: string, requests: object, spec: object = {}): Promise<void> {
  const claim = { accessModes: ['ReadWriteOnce'], storageClassName: 'fast', resources: { requests }, ...spec }
  await client.create(persistentVolumeClaimKind, { metadata: { namespace: NAMESPACE, name }, spec: claim } as never)
  const boundStatus = { status: { phase: 'Bound', capacity: { storage: '1Gi' } } }
  await client.patch(
    persistentVolumeClaimKind,
    refOf(name),
    { type: 'merge', body: boundStatus },
    { subresource: 'status' },
  )
}

async function deleteClaim(client: Client, name: string): Promise<void> {
  await client.delete(persistentVolumeClaimKind, refOf(name))
  const body = { metadata: { finalizers: null } }
  await client.patch(persistentVolumeClaimKind, refOf(name), { type: 'merge', body })
}

const refOf = (name: string) => ({ namespace: NAMESPACE, name })

async function runRandomAction(
  client: Client,
  roll: (n: number) => number,
  name: string,
  existingNames: string[],
): Promise<string> {
  const existingName = existingNames[roll(existingNames.length)] ?? name
  const className = [undefined, 'gold', 'silver'][roll(3)]
  const patch = (spec: object) =>
    client.patch(persistentVolumeClaimKind, refOf(existingName), { type: 'merge', body: { spec } })
  switch (roll(8)) {
    case 0:
    case 1:
      return `delete ${await describeOutcome(deleteClaim(client, existingName))}`
    case 2:
      return `grow ${await describeOutcome(patch({ resources: { requests: { storage: `${2 + roll(4)}Gi` } } }))}`
    case 3:
      return `class ${await describeOutcome(patch({ volumeAttributesClassName: ['gold', 'silver'][roll(2)] }))}`
    case 4:
      return `complete ${await describeOutcome(completeClassChange(client, existingName))}`
    default: {
      const iops = roll(2) ? { iops: String(100 * (1 + roll(6))) } : {}
      const requests = { storage: `${1 + roll(3)}Gi`, ...iops }
      const spec = { volumeAttributesClassName: className, ...(roll(2) ? { storageClassName: 'slow' } : {}) }
      return `create ${await describeOutcome(createClaim(client, name, requests, spec))}`
    }
  }
}

/** Makes the requested class of the claim its current class. */
async function completeClassChange(client: Client, name: string): Promise<void> {
  const { metadata, spec } = await client.get(persistentVolumeClaimKind, refOf(name))
  const status = { currentVolumeAttributesClassName: spec?.volumeAttributesClassName ?? null }
  const body = { metadata: { resourceVersion: metadata.resourceVersion }, status }
  await client.patch(persistentVolumeClaimKind, refOf(name), { type: 'merge', body }, { subresource: 'status' })
}

async function describeOutcome(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'succeeded'
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    if (error.code === 403 && error.message.includes('exceeded quota')) return 'over quota'
    if ([404, 409, 422].includes(error.code)) return 'rejected'
    throw error
  }
}

/** Creates claims with the first and the last client while a quota is created, and checks that the quota counts all of them. */
async function raceForNewQuota(clients: readonly Client[], store: Store, count: number): Promise<void> {
  for (let round = 0; round < count; round++) {
    const namespace = `new-${round}`
    await (clients[0] as Client).create(namespaceKind, { metadata: { name: namespace } })
    const postClaim = (client: Client, name: string) => {
      const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
      return client.create(persistentVolumeClaimKind, { metadata: { namespace, name }, spec } as never)
    }
    const roll = createDice(round)
    const createClaims = (client: Client, prefix: string, n: number) =>
      Array.from({ length: n }, (_, index) => postClaim(client, `${prefix}-${index}`))
    const admin = async (client: Client) => {
      await Promise.all(createClaims(client, 'early', roll(3)))
      const quota = { metadata: { namespace, name: 'new' }, spec: { hard: { persistentvolumeclaims: '1000' } } }
      await client.create(resourceQuotaKind, quota as never)
      await postClaim(client, 'counts')
    }
    const user = async (client: Client) => {
      for (let n = 0; n < 4; n++) await Promise.all(createClaims(client, `user-${n}`, 1 + roll(4)))
    }
    await Promise.all([admin(clients.at(-1) as Client), user(clients[0] as Client)])
    const { entries } = await store.list({ prefix: `core/persistentvolumeclaims/${namespace}/` })
    const quota = await store.get(`core/resourcequotas/${namespace}/new`)
    const { used } = JSON.parse(Buffer.from(quota?.value ?? []).toString()).status
    expect(used, `round ${round}`).toEqual({ persistentvolumeclaims: String(entries.length) })
  }
}

function expectAllOutcomes(totals: Record<string, number>): void {
  for (const outcome of [
    'create succeeded',
    'create over quota',
    'grow succeeded',
    'class succeeded',
    'complete succeeded',
    'delete succeeded',
  ]) {
    expect(totals[outcome] ?? 0, `${outcome}: ${JSON.stringify(totals)}`).toBeGreaterThan(0)
  }
}

describe('quotas with 64 concurrent clients', () => {
  it(`REX-4 VAC-10 PIO-7 are exact and never exceeded on the memory store (${roundCount(60)} rounds)`, async () => {
    const store = await openMemoryStore({ clock })
    cleanups.push(() => store.close())
    const { client, ready } = createClient(store)
    await ready
    expectAllOutcomes(await raceClients([client], store, roundCount(60)))
    await raceForNewQuota([client], store, roundCount(60))
  }, 3_600_000)

  it(`REX-4 VAC-10 PIO-7 are exact and never exceeded on LMDB (${roundCount(40)} rounds)`, async () => {
    const dir = await mkdtemp(join(tmpdir(), 'stowage-quota-'))
    cleanups.push(() => rm(dir, { recursive: true, force: true }))
    const store = await openLmdbStore({ dir, clock })
    cleanups.push(() => store.close())
    const { client, ready } = createClient(store)
    await ready
    expectAllOutcomes(await raceClients([client], store, roundCount(40)))
  }, 3_600_000)

  const skipMessage = etcdSkipReason()
  it.skipIf(skipMessage)(
    `REX-4 VAC-10 PIO-7 are exact and never exceeded on etcd through two servers (${roundCount(10)} rounds)`,
    async () => {
      const etcd = await startEtcd()
      cleanups.push(() => etcd.remove())
      const clients: Client[] = []
      const stores: Store[] = []
      for (let n = 0; n < 2; n++) {
        const store = await openEtcdStore({ endpoints: etcd.endpoints, prefix: '/race', clock })
        cleanups.push(() => store.close())
        const { client, ready } = createClient(store)
        await ready
        stores.push(store)
        clients.push(client)
      }
      expectAllOutcomes(await raceClients(clients, stores[0] as Store, roundCount(10)))
      await raceForNewQuota(clients, stores[0] as Store, roundCount(50))
    },
    3_600_000,
  )
})
