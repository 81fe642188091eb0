// Scenario: users, controllers and an administrator of one namespace work through several API servers that share a store,
// each on a copy that lags behind, while disks refuse and servers and controllers die. Then all faults end.
// Promise: at every commit each quota says exactly what the objects add up to, no charge ever takes it above its bounds,
// verifying finds nothing to repair, and in the end what is free is given and what is not is refused.
import { allGatesOn } from '../../api/feature-gates.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { createApiServer, inProcessClient, SYSTEM_USER, versionInfo } from '../../apiserver/index.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createQuotaController } from '../../controllers/quota/index.ts'
import { createCacheSet } from '../../runtime/index.ts'
import type { Store } from '../../store/index.ts'
import { answerTo } from '../answer.ts'
import { createCourt } from '../checkers/conviction.ts'
import { createQuotaChecker, followQuotas } from '../checkers/quota.ts'
import { createCluster } from '../cluster.ts'
import { createProcess, type Env, type SimProcess } from '../process.ts'
import { shareStore } from '../shared-store.ts'
import { createWorld, type World } from '../world.ts'
import { crashesOf } from './bad-day.ts'
import { claimOf, createQuotaPeople, NAMESPACE, type Outcome, outcomeOf, STORAGE_CLASSES } from './quota-people.ts'

export interface QuotaRun {
  readonly world: World
  readonly outcomes: Readonly<Record<Outcome, number>>
  readonly crashes: number
  /** Quotas that verification has judged. */
  readonly verified: number
}

const SERVERS_MAX = 3
const MINUTE_MS = 60_000
const VERIFY_EVERY_MS = 20_000
const LAST_CLAIMS = 8

interface Server {
  readonly process: SimProcess
  client: Client | undefined
}

export async function quotasHold(seed: number, { minutes = 1.5 } = {}): Promise<QuotaRun> {
  const world = createWorld(seed)
  const dice = world.dice('scenario')
  const cluster = await createCluster(world)
  const court = createCourt(world, `seed ${seed}`, () =>
    [...checker.quotas.values()].map((quota) => JSON.stringify(quota)).join('\n'),
  )
  const checker = createQuotaChecker(NAMESPACE, court.convict)
  const people = createQuotaPeople(world.dice('people'), checker, world.note)
  const outcomes: Record<Outcome, number> = { done: 0, 'over quota': 0, 'not possible': 0, 'no answer': 0 }
  let verified = 0
  followQuotas(cluster, checker)
  const latencyMs = 1 + dice() * 200
  const servers: Server[] = []
  await answerTo(world, prepare(anyServer()!), 'the namespace')
  for (let left = 1 + Math.floor(dice() * SERVERS_MAX); left > 0; left--) servers.push(addServer(`server ${left}`))
  const controller = cluster.add('quota controller', runController)
  Object.assign(cluster.network.faults, { latencyMs, loseRequest: dice() * 0.05, loseReply: dice() * 0.05 })
  cluster.disk.faults.refuse = dice() * 0.03
  controller.crashRate = dice() * 0.002

  const untilMs = world.nowMs + minutes * MINUTE_MS
  while (world.nowMs < untilMs) {
    await world.runFor(dice() * dice() * 3_000) // bursts and pauses
    if (dice() < 0.01) crashAll()
    for (const { process } of servers) if (dice() < 0.01) process.crash()
    for (const process of [cluster.server, controller]) if (dice() < 0.5) process.start()
    for (const { process } of servers) if (cluster.store() && dice() < 0.5) process.start()
    for (let left = Math.floor(dice() * 8); left > 0; left--) actOnce()
  }

  await cluster.heal()
  for (const { process } of servers) process.start()
  await world.runFor(MINUTE_MS) // what was begun ends, and everything is verified once more
  await takeWhatIsFree()
  court.adjourn()
  const processes = [cluster.server, controller, ...servers.map(({ process }) => process)]
  return { world, outcomes, verified, crashes: crashesOf(processes) }

  /** A server of its own, on the store that the cluster's server holds. */
  function addServer(name: string): Server {
    const server: Server = {
      client: undefined,
      process: createProcess(world, name, (env) => {
        server.client = undefined
        const shared = cluster.store()
        if (shared) void serve(env, shared)
      }),
    }
    async function serve(env: Env, shared: Store): Promise<void> {
      const store = await shareStore({ world, env, shared, latencyMs })
      const api = createApiServer({
        store,
        clock: env.clock,
        random: env.random,
        log: silentLog,
        kinds: ALL_KINDS,
        gates: allGatesOn,
        authenticator: { authenticate: () => ({ is: 'known', user: SYSTEM_USER }), authenticateToken: () => undefined },
        authorizer: { authorize: () => ({ allowed: true }) },
        version: versionInfo(),
      })
      server.client = inProcessClient(api.objects, SYSTEM_USER)
    }
    server.process.start()
    return server
  }

  function crashAll(): void {
    cluster.server.crash()
    for (const { process } of servers) process.crash()
  }

  function runController({ clock, random, signal }: Env, client: Client): void {
    const common = { client, clock, random, log: silentLog }
    const quotaMetrics = {
      verified: (quotas: number) => {
        verified += quotas
      },
      foundDifference: () => court.convict('verification found a difference'),
    }
    const options = { kinds: ALL_KINDS, quotaMetrics, verifyEveryMs: VERIFY_EVERY_MS }
    void createQuotaController({ ...common, caches: createCacheSet(common), ...options }).run(signal)
  }

  function anyServer(): Client | undefined {
    const up = [...servers.filter(({ process }) => process.alive).map(({ client }) => client), cluster.direct()]
    return up[Math.floor(dice() * up.length)]
  }

  /** Through one of the servers; an answer from one that has died meanwhile never comes. */
  function actOnce(): void {
    const client = anyServer()
    if (!client) return
    void people.act(client).then(
      (outcome) => outcomes[outcome]++,
      (error: Error) => court.convict(`unexpected: ${error.message}`),
    )
  }

  /** At rest, whichever server is asked, a claim is refused exactly if it does not fit. */
  async function takeWhatIsFree(): Promise<void> {
    for (let at = 0; at < LAST_CLAIMS; at++) {
      const [gone] = checker.claims.keys()
      if (at > 0 && gone) await answerTo(world, outcomeOf(people.deleteClaim(anyServer()!, gone)), 'a deletion')
      const storageClassName = STORAGE_CLASSES[at % STORAGE_CLASSES.length] as string
      const claim = claimOf(`last-${at}`, { requests: { storage: '1Gi' }, storageClassName })
      const expected = [...checker.quotas.values()].every(({ spec }) => hasRoomFor(claim, spec)) ? 'done' : 'over quota'
      const created = anyServer()!.create(persistentVolumeClaimKind, claim as never)
      const outcome = await answerTo(world, outcomeOf(created), 'a claim')
      if (outcome !== expected) {
        court.convict(`at rest, ${claim.metadata.name} was answered "${outcome}", not "${expected}"`)
      }
    }
  }

  function hasRoomFor(claim: any, spec: any): boolean {
    const used = checker.addUp(spec)
    const withIt = checker.addUp(spec, claim)
    return [...withIt].every(([key, amount]) => amount <= (used.get(key) ?? 0n) || amount <= checker.boundOf(spec, key))
  }
}

async function prepare(client: Client): Promise<void> {
  await client.create(namespaceKind, { metadata: { name: NAMESPACE } })
  for (const name of STORAGE_CLASSES) {
    const storageClass = { metadata: { name }, provisioner: 'd.example.com', allowVolumeExpansion: true }
    await client.create(storageClassKind, storageClass as never)
  }
}
