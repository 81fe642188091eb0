// Random sequences of expansions, lowered requests, drivers that succeed, refuse, fail, lose replies and hang, controllers
// that crash at any call, server restarts and quota changes: on the real server, the durable store and the real
// controller, compared with a model that keeps three numbers per claim and shares no code with them.
// EXPANSION_SEQUENCES=10000 runs the long form. A failure prints its shrunk sequence.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create, type DescMethod, type Message } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { allGatesOn } from '../src/api/feature-gates.ts'
import type { ExpansionQuota } from '../src/api/kind.ts'
import { persistentVolumeClaimKind } from '../src/api/kinds/claim/claim.ts'
import { ALL_KINDS } from '../src/api/kinds/index.ts'
import { resourceQuotaKind } from '../src/api/kinds/resource-quota/resource-quota.ts'
import { storageClassKind } from '../src/api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../src/api/kinds/volume/volume.ts'
import { ApiError } from '../src/api/status-error.ts'
import { createApiServer, createBuiltIns, inProcessClient, SYSTEM_USER, versionInfo } from '../src/apiserver/index.ts'
import { silentLog } from '../src/base/log.ts'
import { manualClock } from '../src/base/manual-clock.ts'
import type { Client } from '../src/client/index.ts'
import { createExpanding } from '../src/controllers/expanding/index.ts'
import { createVolumeChangeControllers } from '../src/controllers/volume-changes/index.ts'
import { createFakeDriver, type FakeEffect, fakeSettings } from '../src/csi/fake/index.ts'
import { type CsiDriver, createCsiDriver, driverFacts, serializeCalls } from '../src/csi/index.ts'
import { createCacheSet } from '../src/runtime/index.ts'
import { openLmdbStore, type Store } from '../src/store/index.ts'
import { checkExpansion, type ExpansionRules } from './expansion-checker.ts'

const SEQUENCES = Number(process.env.EXPANSION_SEQUENCES ?? 400)
const GI = 1024 ** 3
const CLAIMS = ['a', 'b', 'c']
const MAXIMUM_GI = 12
const QUOTA_GI = 30

type Answer = 'ok' | 'infeasible' | 'final' | 'uncertain' | 'lost' | 'hang'
type Command =
  | { readonly do: 'ask'; readonly claim: string; readonly gi: number }
  /** Lowered to the size the volume has. */
  | { readonly do: 'cancel'; readonly claim: string }
  | { readonly do: 'answer'; readonly answer: Answer }
  | { readonly do: 'release' }
  | { readonly do: 'kill'; readonly calls: number; readonly when: 'before' | 'after' }
  | { readonly do: 'startAnew'; readonly what: 'controller' | 'server' }
  | { readonly do: 'quota'; readonly gi: number }
  | { readonly do: 'wait'; readonly seconds: number }
  | { readonly do: 'node'; readonly claim: string; readonly refuses: boolean }

const claim = fc.constantFrom(...CLAIMS)
const commands: fc.Arbitrary<Command[]> = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({ do: fc.constant('ask' as const), claim, gi: fc.integer({ min: 1, max: 16 }) }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel' as const), claim }) },
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant('answer' as const),
        answer: fc.constantFrom<Answer>('ok', 'ok', 'infeasible', 'final', 'uncertain', 'lost', 'hang'),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ do: 'release' as const }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('kill' as const),
        calls: fc.integer({ min: 0, max: 4 }),
        when: fc.constantFrom('before' as const, 'after' as const),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('startAnew' as const),
        what: fc.constantFrom('controller' as const, 'controller' as const, 'server' as const),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('quota' as const), gi: fc.integer({ min: 5, max: 45 }) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), seconds: fc.constantFrom(1, 5, 30, 400) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('node' as const), claim, refuses: fc.boolean() }) },
  ),
  { minLength: 3, maxLength: 20 },
)

describe('expansion against a model', () => {
  for (const expansionQuota of ['high-water-mark', 'actual'] as const) {
    for (const expandsOnNode of [false, true]) {
      const kind = `${expansionQuota}, ${expandsOnNode ? 'nodes grow file systems' : 'the driver does it all'}`
      it(`REX-2 REX-3 REX-4 REX-8 PLUS-14 every answer, charge and size equals the model's (${kind})`, async () => {
        await fc.assert(
          fc.asyncProperty(commands, (all) => runSequence(all, { expansionQuota, expandsOnNode })),
          { numRuns: Math.ceil(SEQUENCES / 4), endOnFailure: false, interruptAfterTimeLimit: 1_500_000 },
        )
      }, 1_800_000)
    }
  }
})

interface Setting {
  readonly expansionQuota: ExpansionQuota
  readonly expandsOnNode: boolean
}

/** In memory if possible: the test checks the writes, not the disk speed. */
const PLACE = process.platform === 'linux' ? '/dev/shm' : tmpdir()

async function runSequence(all: readonly Command[], setting: Setting): Promise<void> {
  const dir = await mkdtemp(join(PLACE, 'stowage-model-'))
  const fixture = await aFixture(dir, setting)
  try {
    for (const command of all) {
      await fixture.carryOut(command)
      await fixture.compare(`after ${JSON.stringify(command)}`)
    }
    await fixture.heal()
    await fixture.compare('in the end')
  } finally {
    await fixture.close()
    await rm(dir, { recursive: true, force: true })
  }
}

/** The expected outcome for a claim, according to the design documents. */
interface Modelled {
  request: number
  mark: number
  capacity: number
  tried: number
  isUnderWay: boolean
}

async function aFixture(dir: string, { expansionQuota, expandsOnNode }: Setting) {
  const clock = manualClock()
  const settings = fakeSettings({
    pools: [{ name: 'pool', capacityBytes: 1_000 * GI }],
    maximumBytes: MAXIMUM_GI * GI,
    expandsOnNode,
  })
  const violations: string[] = []
  const model = new Map<string, Modelled>()
  let hardGi = QUOTA_GI
  let answer: Answer = 'ok'

  const fake = createFakeDriver({ clock, settings })
  const scripted = fake.script.match
  fake.script.match = (method, volumes) => {
    if (method !== 'ControllerExpandVolume') return scripted(method, volumes)
    // A driver that has granted a size does not refuse it later.
    const isGiven = volumes.some((id) => checker?.hasRequestedSize(id))
    const effect = effectOf(isGiven && (answer === 'infeasible' || answer === 'final') ? 'uncertain' : answer)
    return effect ? { effect } : undefined
  }
  const driver = driverTo(fake)
  const facts = await driverFacts(driver)

  const ref = (name: string) => ({ namespace: 'default', name })
  const setStatus = (name: string, status: object) =>
    client.patch(persistentVolumeClaimKind, ref(name), { type: 'merge', body: { status } }, { subresource: 'status' })

  let store: Store
  let client: Client
  let checker: ReturnType<typeof checkExpansion> | undefined
  let controller: Controller | undefined
  const followers: ((store: Store) => void)[] = []
  await openServer()
  await prepare()
  checker = checkExpansion({
    cluster: { follow, world: { nowMs: 0 } },
    driver: { state: () => fake.state, settings },
    followsRealSize: expansionQuota === 'actual',
    maximumBytes: MAXIMUM_GI * GI,
    reportViolation: (violation: string) => void violations.push(violation),
  } as unknown as ExpansionRules)
  controller = startController()
  await settle()

  function follow(listener: (store: Store) => void): void {
    followers.push(listener)
    listener(store)
  }

  async function openServer(): Promise<void> {
    store = await openLmdbStore({ dir, clock })
    const server = createApiServer({
      store,
      clock,
      random: () => 0.5,
      log: silentLog,
      kinds: ALL_KINDS,
      gates: allGatesOn,
      expansionQuota,
      authenticator: { authenticate: () => ({ is: 'unknown' }) as never, authenticateToken: () => undefined },
      authorizer: { authorize: () => ({ allowed: true }) },
      version: versionInfo(),
      trackManagedFields: false,
    })
    client = inProcessClient(server.objects, SYSTEM_USER)
    await createBuiltIns(server.objects)
    for (const listener of followers) listener(store)
  }

  async function prepare(): Promise<void> {
    const provisioner = settings.name
    await client.create(storageClassKind, {
      metadata: { name: 'grows' },
      provisioner,
      allowVolumeExpansion: true,
    } as never)
    const hard = { 'requests.storage': `${QUOTA_GI}Gi` }
    await client.create(resourceQuotaKind, {
      metadata: { namespace: 'default', name: 'team' },
      spec: { hard },
    } as never)
    for (const [order, name] of CLAIMS.entries()) {
      const handle = `vol-${name}`
      const capability = 'mount SINGLE_NODE_WRITER'
      fake.state.volumes[handle] = {
        id: handle,
        name: handle,
        order,
        pool: 'pool',
        copies: 1,
        capacityBytes: GI,
        createRequest: { capabilities: [capability], parameters: {}, mutableParameters: {}, source: undefined },
        mutableParameters: {},
        attachments: {},
        onNodes: { 'node-1': { staged: {}, published: {}, fileSystemBytes: GI } },
      }
      const size = { storage: '1Gi' }
      const spec = { accessModes: ['ReadWriteOnce'], storageClassName: 'grows' }
      const { metadata } = await client.create(persistentVolumeClaimKind, {
        metadata: { namespace: 'default', name },
        spec: { ...spec, volumeName: `pv-${name}`, resources: { requests: size } },
      } as never)
      await client.create(persistentVolumeKind, {
        metadata: { name: `pv-${name}` },
        spec: {
          ...spec,
          capacity: size,
          persistentVolumeReclaimPolicy: 'Retain',
          claimRef: { namespace: 'default', name, uid: metadata.uid },
          csi: { driver: provisioner, volumeHandle: handle },
        },
      } as never)
      await setStatus(name, { phase: 'Bound', capacity: size })
      model.set(name, { request: 1, mark: 1, capacity: 1, tried: 0, isUnderWay: false })
    }
  }

  interface Controller {
    readonly life: Life
    isAtRest(): boolean
    stop(): Promise<void>
  }

  /** The production controller, in a process that can crash at any call it makes. */
  function startController(): Controller {
    const life = aLife()
    const mine = life.wrap(client, ['get', 'list', 'create', 'update', 'patch', 'delete', 'commit'])
    const csi: CsiDriver = { ...driver, controller: life.wrap(driver.controller, ['controllerExpandVolume']) }
    const caches = createCacheSet({ client, clock, random: () => 0.5 })
    const deps = { client: mine, caches, clock, random: () => 0.5, log: silentLog }
    const events = { record: () => {} }
    const expanding = createExpanding({ ...deps, driver: serializeCalls(csi), facts, events })
    const controllers = createVolumeChangeControllers({ ...deps, facts, changes: [expanding] })
    const abort = new AbortController()
    const running = controllers.run(abort.signal)
    return {
      life,
      isAtRest() {
        const { depth, running: atWork } = controllers.queues[0]!.stats()
        return life.isDead || (depth === 0 && atWork <= fake.script.hanging)
      },
      async stop() {
        life.kill()
        abort.abort()
        await Promise.race([running, settleTurns(5)])
        await caches.stop()
      },
    }
  }

  /** Runs all work that is ready without advancing the clock. */
  async function settle(): Promise<void> {
    for (let still = 0, turns = 0; still < STILL_TURNS; turns++) {
      const before = store.revision + fake.record.calls.length
      await settleTurns(1)
      const isStill = (controller?.isAtRest() ?? true) && store.revision + fake.record.calls.length === before
      still = isStill ? still + 1 : 0
      if (turns > TURNS_MAX) throw new Error('it does not come to rest')
    }
  }

  async function ask(name: string, size: number): Promise<void> {
    const body = { spec: { resources: { requests: { storage: `${size}Gi` } } } }
    const expected = predicted(name, size)
    const code = await client.patch(persistentVolumeClaimKind, ref(name), { type: 'merge', body }).then(
      () => 200,
      (error) => (error instanceof ApiError ? error.code : Number.NaN),
    )
    expect(code, `${name} asks for ${size}Gi of ${JSON.stringify([...model])}, quota ${hardGi}Gi`).toBe(expected)
    if (code !== 200) return
    const one = model.get(name)!
    one.request = size
    one.mark = Math.max(one.mark, size)
    release(one)
  }

  function predicted(name: string, size: number): number {
    const one = model.get(name)!
    if (size < one.request && size < one.capacity) return 422
    const charge = chargeOf(one)
    const next = Math.max(charge, size)
    return next > charge && used() - charge + next > hardGi ? 403 : 200
  }

  const chargeOf = ({ request, mark, tried }: Modelled) => Math.max(request, mark, tried)
  const used = () => [...model.values()].reduce((sum, one) => sum + chargeOf(one), 0)

  /** A size that was requested and never granted is released once no operation is in progress. */
  function release(one: Modelled): void {
    if (expansionQuota !== 'actual' || one.isUnderWay) return
    if (one.request > one.capacity || one.tried > one.capacity) return
    one.mark = Math.min(one.mark, Math.max(one.capacity, one.request))
  }

  /** Adopts what the controller reported and the model cannot predict; everything else must equal the model. */
  async function compare(when: string): Promise<void> {
    expect(violations, when).toEqual([])
    for (const name of CLAIMS) {
      const { spec, status } = (await client.get(persistentVolumeClaimKind, ref(name))) as any
      const one = model.get(name)!
      one.capacity = giOf(status.capacity.storage)
      one.tried = giOf(status.allocatedResources?.storage ?? '0')
      one.isUnderWay = status.allocatedResourceStatuses?.storage !== undefined
      release(one)
      expect(
        { name, request: giOf(spec.resources.requests.storage), mark: giOf(spec.allocatedResources.storage) },
        when,
      ).toEqual({ name, request: one.request, mark: one.mark })
    }
    const quota = (await client.get(resourceQuotaKind, ref('team'))) as any
    if (quota.status?.used) expect(giOf(quota.status.used['requests.storage']), when).toBe(used())
  }

  /** A node agent that follows the rules, implemented independently. */
  async function node(name: string, refuses: boolean): Promise<void> {
    const { metadata, status } = (await client.get(persistentVolumeClaimKind, ref(name))) as any
    const state = status.allocatedResourceStatuses?.storage
    if (state !== 'NodeResizePending' && state !== 'NodeResizeInProgress') return
    const size = status.allocatedResources.storage
    const conditions = (status.conditions ?? []).filter(({ type }: any) => !RESIZE_CONDITIONS.includes(type))
    const now = new Date(clock.nowMs()).toISOString().replace(/\.\d+/, '')
    const failure = {
      type: 'NodeResizeError',
      status: 'True',
      message: 'no',
      lastProbeTime: now,
      lastTransitionTime: now,
    }
    if (!refuses) {
      const held = fake.state.volumes[`vol-${name}`]!
      held.onNodes['node-1']!.fileSystemBytes = Math.max(held.capacityBytes, giOf(size) * GI)
    }
    const next = refuses
      ? {
          allocatedResourceStatuses: { storage: 'NodeResizeInfeasible' },
          conditions: [...(status.conditions ?? []), failure],
        }
      : { capacity: { storage: size }, allocatedResourceStatuses: { storage: null }, conditions }
    const body = { metadata: { resourceVersion: metadata.resourceVersion }, status: next }
    await client.patch(persistentVolumeClaimKind, ref(name), { type: 'merge', body }, { subresource: 'status' })
  }

  async function startAnew(what: 'controller' | 'server'): Promise<void> {
    await controller?.stop()
    controller = undefined
    await settle()
    if (what === 'server') {
      await store.close()
      await openServer()
    }
    controller = startController()
  }

  async function carryOut(command: Command): Promise<void> {
    switch (command.do) {
      case 'ask':
        await ask(command.claim, command.gi)
        break
      case 'cancel':
        await ask(command.claim, model.get(command.claim)!.capacity)
        break
      case 'answer':
        answer = command.answer
        break
      case 'release':
        fake.script.release()
        break
      case 'kill':
        controller?.life.killIn(command.calls, command.when)
        break
      case 'startAnew':
        await startAnew(command.what)
        break
      case 'quota': {
        hardGi = command.gi
        const body = { spec: { hard: { 'requests.storage': `${hardGi}Gi` } } }
        await client.patch(resourceQuotaKind, ref('team'), { type: 'merge', body })
        break
      }
      case 'wait':
        await clock.advance(command.seconds * 1_000)
        break
      case 'node':
        await node(command.claim, command.refuses)
        break
    }
    await settle()
  }

  return {
    carryOut,
    compare,
    /** Ends all faults: every operation in progress completes or reports why not. */
    async heal(): Promise<void> {
      answer = 'ok'
      fake.script.release()
      await startAnew('controller')
      for (let round = 0; round < HEAL_ROUNDS_MAX; round++) {
        await settle()
        for (const name of CLAIMS) await node(name, false)
        await settle()
        if (checker!.problems().length === 0) return
        await clock.advance(60_000)
      }
      expect(checker!.problems()).toEqual([])
    },
    async close(): Promise<void> {
      fake.script.release()
      await controller?.stop()
      await store.close()
    },
  }
}

const STILL_TURNS = 6
const TURNS_MAX = 100_000
/** In minutes; a refused size is retried after five. */
const HEAL_ROUNDS_MAX = 15
const RESIZE_CONDITIONS = ['Resizing', 'FileSystemResizePending', 'ControllerResizeError', 'NodeResizeError']

async function settleTurns(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
}

const giOf = (size: string): number => (size === '0' ? 0 : Number(/^(\d+)Gi$/.exec(size)?.[1] ?? Number.NaN))

function effectOf(answer: Answer): FakeEffect | undefined {
  switch (answer) {
    case 'ok':
      return undefined
    case 'infeasible':
      return { do: 'fail', code: 'OUT_OF_RANGE' }
    case 'final':
      return { do: 'fail', code: 'INTERNAL' }
    case 'uncertain':
      return { do: 'fail', code: 'UNAVAILABLE' }
    case 'lost':
      return { do: 'loseReply', as: 'unavailable' }
    case 'hang':
      return { do: 'hang' }
  }
}

interface Life {
  readonly isDead: boolean
  kill(): void
  /** After this many more calls: before the call takes effect, or before its response arrives. */
  killIn(calls: number, when: 'before' | 'after'): void
  wrap<T extends object>(target: T, names: readonly (keyof T & string)[]): T
}

/** A crashed process does nothing more: its calls never settle. */
function aLife(): Life {
  const never = () => new Promise<never>(() => {})
  let isDead = false
  let left = Number.POSITIVE_INFINITY
  let dies: 'before' | 'after' = 'before'
  return {
    get isDead() {
      return isDead
    },
    kill() {
      isDead = true
    },
    killIn(calls, when) {
      left = calls
      dies = when
    },
    wrap(target, names) {
      const wrapped: any = { ...target }
      for (const name of names) {
        const method = (target as any)[name]
        wrapped[name] = async (...args: any[]) => {
          const isLast = left-- <= 0
          if (isLast && dies === 'before') isDead = true
          if (isDead) return never()
          const settled = await method.apply(target, args).then(
            (value: unknown) => () => value,
            (error: unknown) => () => {
              throw error
            },
          )
          if (isLast) isDead = true
          return isDead ? never() : settled()
        }
      }
      return wrapped
    },
  }
}

type AnyCall = (request: Message, call: { signal: AbortSignal }) => Promise<object>

function driverTo(fake: ReturnType<typeof createFakeDriver>): CsiDriver {
  const services = { Identity: fake.identity, Controller: fake.controller, Node: fake.node('node-1') }
  return createCsiDriver(async (method: DescMethod, request, { signal = new AbortController().signal }) => {
    const service = services[method.parent.name as keyof typeof services] as unknown as Record<string, AnyCall>
    return create(method.output, (await service[method.localName]!(request, { signal })) as never)
  })
}
