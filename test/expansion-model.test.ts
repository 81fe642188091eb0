// Runs random sequences of expansions, lowered requests, driver failures, controller crashes, server restarts and quota
// changes on the API server, the durable store and the controller, and compares the result with a model that shares no
// code with them. EXPANSION_SEQUENCES=10000 runs the long form. A failure prints its shrunk sequence.
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
import { type CsiDriver, createCsiDriver, readDriverFacts, serializeCalls } from '../src/csi/index.ts'
import { createCacheSet } from '../src/runtime/index.ts'
import { openLmdbStore, type Store } from '../src/store/index.ts'
import { checkExpansion, type ExpansionRules } from './expansion-checker.ts'

const SEQUENCES = Number(process.env.EXPANSION_SEQUENCES ?? 400)
const GI = 1024 ** 3
const CLAIMS = ['a', 'b', 'c']
const MAXIMUM_GI = 12
const QUOTA_GI = 30

type DriverOutcome = 'ok' | 'infeasible' | 'final' | 'uncertain' | 'lost' | 'hang'
type Command =
  | { readonly do: 'request'; readonly claimName: string; readonly gi: number }
  /** Lowers the request to the current capacity. */
  | { readonly do: 'cancel'; readonly claimName: string }
  | { readonly do: 'setOutcome'; readonly outcome: DriverOutcome }
  | { readonly do: 'release' }
  | { readonly do: 'kill'; readonly calls: number; readonly when: 'before' | 'after' }
  | { readonly do: 'restart'; readonly target: 'controller' | 'server' }
  | { readonly do: 'quota'; readonly gi: number }
  | { readonly do: 'wait'; readonly seconds: number }
  | { readonly do: 'node'; readonly claimName: string; readonly rejects: boolean }

const claimName = fc.constantFrom(...CLAIMS)
const commands: fc.Arbitrary<Command[]> = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({ do: fc.constant('request' as const), claimName, gi: fc.integer({ min: 1, max: 16 }) }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel' as const), claimName }) },
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant('setOutcome' as const),
        outcome: fc.constantFrom<DriverOutcome>('ok', 'ok', 'infeasible', 'final', 'uncertain', 'lost', 'hang'),
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
        do: fc.constant('restart' as const),
        target: fc.constantFrom('controller' as const, 'controller' as const, 'server' as const),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('quota' as const), gi: fc.integer({ min: 5, max: 45 }) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), seconds: fc.constantFrom(1, 5, 30, 400) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('node' as const), claimName, rejects: fc.boolean() }) },
  ),
  { minLength: 3, maxLength: 20 },
)

describe('expansion against a model', () => {
  for (const expansionQuota of ['high-water-mark', 'actual'] as const) {
    for (const expandsOnNode of [false, true]) {
      const kind = `${expansionQuota}, ${expandsOnNode ? 'nodes expand file systems' : 'the controller expands everything'}`
      it(`REX-2 REX-3 REX-4 REX-8 PLUS-14 returns the codes, charges and sizes of the model (${kind})`, async () => {
        await fc.assert(
          fc.asyncProperty(commands, (sequence) => runSequence(sequence, { expansionQuota, expandsOnNode })),
          { numRuns: Math.ceil(SEQUENCES / 4), endOnFailure: false, interruptAfterTimeLimit: 1_500_000 },
        )
      }, 1_800_000)
    }
  }
})

interface ModelOptions {
  readonly expansionQuota: ExpansionQuota
  readonly expandsOnNode: boolean
}

/** A directory in memory if possible, because the test does not depend on the disk. */
const BASE_DIR = process.platform === 'linux' ? '/dev/shm' : tmpdir()

async function runSequence(sequence: readonly Command[], options: ModelOptions): Promise<void> {
  const dir = await mkdtemp(join(BASE_DIR, 'stowage-model-'))
  const fixture = await createFixture(dir, options)
  try {
    for (const command of sequence) {
      await fixture.execute(command)
      await fixture.compare(`after ${JSON.stringify(command)}`)
    }
    await fixture.recover()
    await fixture.compare('after recovery')
  } finally {
    await fixture.close()
    await rm(dir, { recursive: true, force: true })
  }
}

/** The expected sizes of a claim in GiB, according to the design documents. */
interface ModelledClaim {
  request: number
  mark: number
  capacity: number
  allocated: number
  isInProgress: boolean
}

async function createFixture(dir: string, { expansionQuota, expandsOnNode }: ModelOptions) {
  const clock = manualClock()
  const settings = fakeSettings({
    pools: [{ name: 'pool', capacityBytes: 1_000 * GI }],
    maximumBytes: MAXIMUM_GI * GI,
    expandsOnNode,
  })
  const violations: string[] = []
  const model = new Map<string, ModelledClaim>()
  let hardGi = QUOTA_GI
  let outcome: DriverOutcome = 'ok'

  const fake = createFakeDriver({ clock, settings })
  const matchScript = fake.script.match
  fake.script.match = (method, volumes) => {
    if (method !== 'ControllerExpandVolume') return matchScript(method, volumes)
    // A driver that has granted a size must not reject it later.
    const wasGranted = volumes.some((id) => checker?.hasRequestedSize(id))
    const effect = effectFor(wasGranted && (outcome === 'infeasible' || outcome === 'final') ? 'uncertain' : outcome)
    return effect ? { effect } : undefined
  }
  const driver = connectFake(fake)
  const facts = await readDriverFacts(driver)

  const ref = (name: string) => ({ namespace: 'default', name })
  const setStatus = (name: string, status: object) =>
    client.patch(persistentVolumeClaimKind, ref(name), { type: 'merge', body: { status } }, { subresource: 'status' })

  let store: Store
  let client: Client
  let checker: ReturnType<typeof checkExpansion> | undefined
  let controller: Controller | undefined
  const followers: ((store: Store) => void)[] = []
  await openServer()
  await createObjects()
  checker = checkExpansion({
    cluster: { follow, simulation: { nowMs: 0 } },
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

  async function createObjects(): Promise<void> {
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
      model.set(name, { request: 1, mark: 1, capacity: 1, allocated: 0, isInProgress: false })
    }
  }

  interface Controller {
    readonly crashSwitch: CrashSwitch
    isAtRest(): boolean
    stop(): Promise<void>
  }

  /** Starts the controller so that it can crash at any of its calls. */
  function startController(): Controller {
    const crashSwitch = createCrashSwitch()
    const crashableClient = crashSwitch.wrap(client, ['get', 'list', 'create', 'update', 'patch', 'delete', 'commit'])
    const csi: CsiDriver = { ...driver, controller: crashSwitch.wrap(driver.controller, ['controllerExpandVolume']) }
    const caches = createCacheSet({ client, clock, random: () => 0.5 })
    const deps = { client: crashableClient, caches, clock, random: () => 0.5, log: silentLog }
    const events = { record: () => {} }
    const expanding = createExpanding({ ...deps, driver: serializeCalls(csi), facts, events })
    const controllers = createVolumeChangeControllers({ ...deps, facts, changes: [expanding] })
    const abort = new AbortController()
    const controllersRun = controllers.run(abort.signal)
    return {
      crashSwitch,
      isAtRest() {
        const { depth, running: runningCount } = controllers.queues[0]!.stats()
        return crashSwitch.hasCrashed || (depth === 0 && runningCount <= fake.script.hangingCount)
      },
      async stop() {
        crashSwitch.kill()
        abort.abort()
        await Promise.race([controllersRun, runTurns(5)])
        await caches.stop()
      },
    }
  }

  /** Runs all work that is ready without advancing the clock. */
  async function settle(): Promise<void> {
    for (let idleTurns = 0, turns = 0; idleTurns < IDLE_TURNS; turns++) {
      const activityBefore = store.revision + fake.record.calls.length
      await runTurns(1)
      const isIdle = (controller?.isAtRest() ?? true) && store.revision + fake.record.calls.length === activityBefore
      idleTurns = isIdle ? idleTurns + 1 : 0
      if (turns > TURNS_MAX) throw new Error('the controller did not settle')
    }
  }

  async function requestSize(name: string, size: number): Promise<void> {
    const body = { spec: { resources: { requests: { storage: `${size}Gi` } } } }
    const expectedCode = predictCode(name, size)
    const code = await client.patch(persistentVolumeClaimKind, ref(name), { type: 'merge', body }).then(
      () => 200,
      (error) => (error instanceof ApiError ? error.code : Number.NaN),
    )
    expect(code, `${name} requests ${size}Gi with ${JSON.stringify([...model])}, quota ${hardGi}Gi`).toBe(expectedCode)
    if (code !== 200) return
    const modelled = model.get(name)!
    modelled.request = size
    modelled.mark = Math.max(modelled.mark, size)
    lowerMark(modelled)
  }

  function predictCode(name: string, size: number): number {
    const modelled = model.get(name)!
    if (size < modelled.request && size < modelled.capacity) return 422
    const charge = chargeOf(modelled)
    const newCharge = Math.max(charge, size)
    return newCharge > charge && usedGi() - charge + newCharge > hardGi ? 403 : 200
  }

  const chargeOf = ({ request, mark, allocated }: ModelledClaim) => Math.max(request, mark, allocated)
  const usedGi = () => [...model.values()].reduce((sum, modelled) => sum + chargeOf(modelled), 0)

  /** Lowers the mark of a size that was never granted, once no operation is in progress. */
  function lowerMark(modelled: ModelledClaim): void {
    if (expansionQuota !== 'actual' || modelled.isInProgress) return
    if (modelled.request > modelled.capacity || modelled.allocated > modelled.capacity) return
    modelled.mark = Math.min(modelled.mark, Math.max(modelled.capacity, modelled.request))
  }

  /** Copies the reported values that the model cannot predict, and compares all others with the model. */
  async function compare(context: string): Promise<void> {
    expect(violations, context).toEqual([])
    for (const name of CLAIMS) {
      const { spec, status } = (await client.get(persistentVolumeClaimKind, ref(name))) as any
      const modelled = model.get(name)!
      modelled.capacity = giOf(status.capacity.storage)
      modelled.allocated = giOf(status.allocatedResources?.storage ?? '0')
      modelled.isInProgress = status.allocatedResourceStatuses?.storage !== undefined
      lowerMark(modelled)
      expect(
        { name, request: giOf(spec.resources.requests.storage), mark: giOf(spec.allocatedResources.storage) },
        context,
      ).toEqual({ name, request: modelled.request, mark: modelled.mark })
    }
    const quota = (await client.get(resourceQuotaKind, ref('team'))) as any
    if (quota.status?.used) expect(giOf(quota.status.used['requests.storage']), context).toBe(usedGi())
  }

  /** Acts as a node agent that completes or rejects a pending node expansion. */
  async function expandOnNode(name: string, rejects: boolean): Promise<void> {
    const { metadata, status } = (await client.get(persistentVolumeClaimKind, ref(name))) as any
    const state = status.allocatedResourceStatuses?.storage
    if (state !== 'NodeResizePending' && state !== 'NodeResizeInProgress') return
    const size = status.allocatedResources.storage
    const conditions = (status.conditions ?? []).filter(({ type }: any) => !RESIZE_CONDITIONS.includes(type))
    const timestampNow = new Date(clock.nowMs()).toISOString().replace(/\.\d+/, '')
    const failure = {
      type: 'NodeResizeError',
      status: 'True',
      message: 'infeasible',
      lastProbeTime: timestampNow,
      lastTransitionTime: timestampNow,
    }
    if (!rejects) {
      const driverVolume = fake.state.volumes[`vol-${name}`]!
      driverVolume.onNodes['node-1']!.fileSystemBytes = Math.max(driverVolume.capacityBytes, giOf(size) * GI)
    }
    const nextStatus = rejects
      ? {
          allocatedResourceStatuses: { storage: 'NodeResizeInfeasible' },
          conditions: [...(status.conditions ?? []), failure],
        }
      : { capacity: { storage: size }, allocatedResourceStatuses: { storage: null }, conditions }
    const body = { metadata: { resourceVersion: metadata.resourceVersion }, status: nextStatus }
    await client.patch(persistentVolumeClaimKind, ref(name), { type: 'merge', body }, { subresource: 'status' })
  }

  async function restart(target: 'controller' | 'server'): Promise<void> {
    await controller?.stop()
    controller = undefined
    await settle()
    if (target === 'server') {
      await store.close()
      await openServer()
    }
    controller = startController()
  }

  async function execute(command: Command): Promise<void> {
    switch (command.do) {
      case 'request':
        await requestSize(command.claimName, command.gi)
        break
      case 'cancel':
        await requestSize(command.claimName, model.get(command.claimName)!.capacity)
        break
      case 'setOutcome':
        outcome = command.outcome
        break
      case 'release':
        fake.script.release()
        break
      case 'kill':
        controller?.crashSwitch.crashAfter(command.calls, command.when)
        break
      case 'restart':
        await restart(command.target)
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
        await expandOnNode(command.claimName, command.rejects)
        break
    }
    await settle()
  }

  return {
    execute,
    compare,
    /** Ends all faults and waits until every operation has completed or reports why not. */
    async recover(): Promise<void> {
      outcome = 'ok'
      fake.script.release()
      await restart('controller')
      for (let round = 0; round < RECOVERY_ROUNDS_MAX; round++) {
        await settle()
        for (const name of CLAIMS) await expandOnNode(name, false)
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

const IDLE_TURNS = 6
const TURNS_MAX = 100_000
/** Rounds of one minute. The controller retries an infeasible size after five minutes. */
const RECOVERY_ROUNDS_MAX = 15
const RESIZE_CONDITIONS = ['Resizing', 'FileSystemResizePending', 'ControllerResizeError', 'NodeResizeError']

async function runTurns(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
}

const giOf = (size: string): number => (size === '0' ? 0 : Number(/^(\d+)Gi$/.exec(size)?.[1] ?? Number.NaN))

function effectFor(outcome: DriverOutcome): FakeEffect | undefined {
  switch (outcome) {
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

interface CrashSwitch {
  readonly hasCrashed: boolean
  kill(): void
  /** Lets this many calls pass and crashes at the next one, before it takes effect or before its response arrives. */
  crashAfter(calls: number, when: 'before' | 'after'): void
  wrap<T extends object>(target: T, names: readonly (keyof T & string)[]): T
}

/** Simulates a crash: after it, wrapped calls never settle. */
function createCrashSwitch(): CrashSwitch {
  const waitForever = () => new Promise<never>(() => {})
  let isCrashed = false
  let remainingCalls = Number.POSITIVE_INFINITY
  let crashPoint: 'before' | 'after' = 'before'
  return {
    get hasCrashed() {
      return isCrashed
    },
    kill() {
      isCrashed = true
    },
    crashAfter(calls, when) {
      remainingCalls = calls
      crashPoint = when
    },
    wrap(target, names) {
      const wrappedTarget: any = { ...target }
      for (const name of names) {
        const method = (target as any)[name]
        wrappedTarget[name] = async (...args: any[]) => {
          const isLast = remainingCalls-- <= 0
          if (isLast && crashPoint === 'before') isCrashed = true
          if (isCrashed) return waitForever()
          const replay = await method.apply(target, args).then(
            (value: unknown) => () => value,
            (error: unknown) => () => {
              throw error
            },
          )
          if (isLast) isCrashed = true
          return isCrashed ? waitForever() : replay()
        }
      }
      return wrappedTarget
    },
  }
}

type AnyCall = (request: Message, call: { signal: AbortSignal }) => Promise<object>

function connectFake(fake: ReturnType<typeof createFakeDriver>): CsiDriver {
  const services = { Identity: fake.identity, Controller: fake.controller, Node: fake.node('node-1') }
  return createCsiDriver(async (method: DescMethod, request, { signal = new AbortController().signal }) => {
    const service = services[method.parent.name as keyof typeof services] as unknown as Record<string, AnyCall>
    return create(method.output, (await service[method.localName]!(request, { signal })) as never)
  })
}
