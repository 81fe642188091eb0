// A simulated CSI driver: the fake driver's model behind a connection that loses requests and replies, in a process that can
// crash. To callers it is a CsiDriver. Its volumes survive crashes; loseState deletes them.
import { create, type DescMethod, type Message } from '@bufbuild/protobuf'
import {
  createFakeDriver,
  createRecord,
  createScript,
  emptyState,
  type FakeDriver,
  type FakeRecord,
  type FakeRule,
  type FakeSettings,
  type FakeState,
  fakeSettings,
  isAccessibleFrom,
  type Script,
} from '../../csi/fake/index.ts'
import { TopologyRequirementSchema } from '../../csi/gen/csi_pb.js'
import {
  type CallOptions,
  CSI_CODES,
  type CsiDriver,
  CsiError,
  type CsiFailureCode,
  createCsiDriver,
} from '../../csi/index.ts'
import { createProcess, type Env, type Incarnation, type SimProcess } from './process.ts'
import type { Simulation } from './simulation.ts'

export interface DriverFaults {
  latencyMs: number
  /** Probability that the request never arrives. */
  loseRequest: number
  /** Probability that the request is executed, but the reply never arrives. */
  loseReply: number
  /** Probability that the driver returns a random error and does nothing. */
  refuse: number
  /** Probability that the call takes up to `slowMs`, which may exceed the caller's timeout. */
  slow: number
  slowMs: number
}

const NO_DRIVER_FAULTS: DriverFaults = {
  latencyMs: 2,
  loseRequest: 0,
  loseReply: 0,
  refuse: 0,
  slow: 0,
  slowMs: 60_000,
}

export interface SimDriver {
  readonly faults: DriverFaults
  readonly settings: FakeSettings
  /** Every call of all incarnations, and overlapping calls on one volume. */
  readonly record: FakeRecord
  readonly script: Script
  /** The driver's process. Its volumes survive a crash. */
  readonly process: SimProcess
  /** Returns the current state of the storage. */
  state(): FakeState
  /** Deletes all volumes; call while the driver is down. */
  loseState(): void
  freezeCapacity(): void
  unfreezeCapacity(): void
  /** Returns the driver for one incarnation of a process. With `nodeId`, it includes the node service of this node. */
  driverFor(incarnation: Incarnation, nodeId?: string): CsiDriver
  /** Ends all faults, including scripted ones, and starts the driver. */
  heal(): void
  /** Decides the result of a call that no rule of `script` matches, before random faults do. */
  findRule?: (call: ScriptedCall) => FakeRule | undefined
}

interface ScriptedCall {
  readonly method: string
  /** Volume names and ids. */
  readonly volumes: readonly string[]
}

export interface SimDriverHooks {
  /** Called after each successful call of the node service, even if the reply is lost. */
  onNode?(nodeId: string, method: string, request: Message): void
  /** Returns a number that each power cut of the node increments. A call during which it changes has no effect. */
  bootOf?(nodeId: string): number
  /** Whether the driver cannot reach a pool now. */
  isOffline?(pool: string): boolean
}

/** Default timeout of a call, as in connectDriver. */
const TIMEOUT_MS = 10_000

/** UNIMPLEMENTED is a fixed property of a driver and never random. */
const ERRORS = CSI_CODES.filter((code): code is CsiFailureCode => code !== 'OK' && code !== 'UNIMPLEMENTED')
/** Codes that leave the result open. Any other code of CreateVolume states that no volume was created. */
const UNCERTAIN_CODES: readonly CsiFailureCode[] = ['UNAVAILABLE', 'ABORTED', 'DEADLINE_EXCEEDED', 'CANCELLED']

export function createSimDriver(
  simulation: Simulation,
  name: string,
  settings: FakeSettings = fakeSettings(),
  hooks: SimDriverHooks = {},
): SimDriver {
  const random = simulation.random(`driver ${name}`)
  const faults: DriverFaults = { ...NO_DRIVER_FAULTS }
  const record = createRecord()
  const script = createScript()
  let state = emptyState()
  let currentRun: { readonly fake: FakeDriver; readonly env: Env } | undefined
  const openCalls = new Set<OpenCall>()
  /** The attributes of the latest ControllerModifyVolume request, by volume ID. */
  const requestedAttributes = new Map<string, Readonly<Record<string, string>>>()

  const instance = createProcess(simulation, name, (env) => {
    const fake = createFakeDriver({
      clock: env.clock,
      settings,
      state,
      record,
      script: {
        ...script,
        match: (method, volumes) =>
          replaceFalseDenial(
            method,
            volumes,
            script.match(method, volumes) ?? driver.findRule?.({ method, volumes }),
          ) ?? randomRule(method, volumes),
        hang: () => env.pass(script.hang()), // a crashed incarnation does not continue when hangs are released
      },
      onCrash: () => instance.crash(),
    })
    currentRun = { fake, env }
  })
  const crash = instance.crash
  instance.crash = () => {
    if (!instance.alive) return
    crash()
    currentRun = undefined
    record.endAllCalls()
    for (const call of openCalls)
      simulation.schedule(latency(), () => call.fail('UNAVAILABLE', 'the connection was reset'))
  }

  const latency = () => faults.latencyMs * random()

  function randomRule(method: string, volumes: readonly string[]): FakeRule | undefined {
    if (random() < faults.refuse) {
      const codes = isCompleted(method, volumes) ? UNCERTAIN_CODES : ERRORS
      const code = codes[Math.floor(random() * codes.length)]!
      return { effect: { do: 'fail', code, message: 'an injected failure' } }
    }
    if (random() >= faults.slow) return undefined
    simulation.tally('driver slow')
    return { afterMs: random() * faults.slowMs }
  }

  /** Replaces an error that would deny completed work: a driver that does so cannot be used correctly. */
  function replaceFalseDenial(
    method: string,
    volumes: readonly string[],
    rule: FakeRule | undefined,
  ): FakeRule | undefined {
    if (rule?.effect?.do !== 'fail' || UNCERTAIN_CODES.includes(rule.effect.code)) return rule
    return isCompleted(method, volumes) ? { ...rule, effect: { ...rule.effect, code: 'UNAVAILABLE' } } : rule
  }

  function isCompleted(method: string, volumes: readonly string[]): boolean {
    const volume = Object.values(state.volumes).find(({ id, name }) => volumes.includes(name) || volumes.includes(id))
    if (method === 'CreateVolume') return volume !== undefined
    if (method !== 'ControllerModifyVolume' || !volume) return false
    return Object.entries(requestedAttributes.get(volume.id) ?? {}).every(
      ([key, value]) => volume.mutableParameters[key] === value,
    )
  }

  /** Returns the request without the topologies of pools that the driver cannot reach. Throws if it concerns such a pool only. */
  function onlineRequest(method: DescMethod, request: Message): Message {
    const isOffline = ({ name: pool }: { readonly name: string }) => hooks.isOffline?.(pool) ?? false
    const { pools } = settings
    if (!pools.some(isOffline)) return request
    const { volumeId, name: volumeName, ...fields } = request as unknown as ControllerRequest
    const volume = Object.values(state.volumes).find(
      ({ id, name: ownName }) => id === volumeId || ownName === volumeName,
    )
    const unreachable = () => new CsiError('UNAVAILABLE', 'the node of the storage does not respond')
    if (volume && isOffline({ name: volume.pool })) throw unreachable()
    const isOnline = (topology: Topology | undefined) =>
      pools.some((pool) => !isOffline(pool) && isAccessibleFrom(pool.segments, topology))
    if (method.name === 'GetCapacity' && !isOnline(fields.accessibleTopology)) throw unreachable()
    if (method.name !== 'CreateVolume') return request
    const { requisite = [], preferred = [] } = fields.accessibilityRequirements ?? {}
    const topologies = [...requisite, ...preferred]
    if (topologies.length > 0 && !topologies.some(isOnline)) throw unreachable()
    const onlinePools = pools.filter((pool) => !isOffline(pool)).map(({ segments = {} }) => ({ segments }))
    const accessibilityRequirements = create(TopologyRequirementSchema, {
      requisite: topologies.length > 0 ? requisite.filter(isOnline) : onlinePools,
      preferred: preferred.filter(isOnline),
    } as never)
    return { ...request, accessibilityRequirements } as Message
  }

  function sendCall(
    incarnation: Incarnation,
    nodeId: string,
    method: DescMethod,
    request: Message,
    options: CallOptions,
  ) {
    return new Promise<Message>((resolve, reject) => {
      const { signal, timeoutMs = TIMEOUT_MS } = options
      const endController = new AbortController()
      const end = (settle: () => void) => {
        if (!openCalls.delete(call)) return
        cancelTimeout()
        signal?.removeEventListener('abort', cancelCall)
        endController.abort(CALL_ENDED) // no effect after the response
        settle()
      }
      const call: OpenCall = {
        incarnation,
        endController,
        fail: (code, message) => end(() => reject(new CsiError(code, `${method.name}: ${message}`))),
      }
      const cancelCall = () => call.fail('CANCELLED', 'the caller cancelled the call')
      const cancelTimeout = simulation.schedule(timeoutMs, () =>
        call.fail('DEADLINE_EXCEEDED', 'no reply came in time'),
      )
      /** Half of the losses break the connection, which the caller notices; the others are silent. */
      const loseMessage = () => random() < 0.5 && call.fail('UNAVAILABLE', 'the connection broke')

      openCalls.add(call)
      if (signal?.aborted) return cancelCall()
      signal?.addEventListener('abort', cancelCall, { once: true })
      simulation.schedule(latency(), () => {
        if (!currentRun) return call.fail('UNAVAILABLE', 'the driver is down')
        if (random() < faults.loseRequest) {
          simulation.tally('driver request lost')
          return loseMessage()
        }
        for (const other of openCalls) if (!other.incarnation.alive) other.endController.abort() // sockets of crashed processes are closed
        const run = currentRun
        const { volumeId, mutableParameters } = request as unknown as ModifyRequest
        if (method.name === 'ControllerModifyVolume') requestedAttributes.set(volumeId, mutableParameters)
        const boot = hooks.bootOf?.(nodeId)
        const action = async () => {
          const reachable = method.parent.name === 'Controller' ? onlineRequest(method, request) : request
          const response = await serviceOf(run.fake, nodeId, method)(reachable, { signal: endController.signal })
          if (!method.name.startsWith('Node')) return response
          if (boot !== hooks.bootOf?.(nodeId)) clearNode(state, nodeId)
          else hooks.onNode?.(nodeId, method.name, request)
          return response
        }
        const respond = (outcome: string, settle: () => void) => {
          simulation.note(`${name} answers ${method.name}: ${outcome}`)
          if (outcome !== 'OK') simulation.tally(`driver ${outcome}`)
          if (random() < faults.loseReply) {
            simulation.tally('driver reply lost')
            return loseMessage()
          }
          return simulation.schedule(latency(), () => end(settle))
        }
        // The driver may crash before the work, and between the work and the reply.
        const work = run.env.pass(Promise.resolve()).then(() => run.env.pass(action()))
        work.then(
          (response) => respond('OK', () => resolve(create(method.output, response as never))),
          (error: CsiError) => respond(error.codeName ?? 'INTERNAL', () => reject(error)),
        )
      })
    })
  }

  instance.start()
  const driver: SimDriver = {
    faults,
    settings,
    record,
    script,
    process: instance,
    state: () => state,
    loseState() {
      state = emptyState()
    },
    freezeCapacity: () => currentRun?.fake.freezeCapacity(),
    unfreezeCapacity: () => currentRun?.fake.unfreezeCapacity(),
    driverFor: (incarnation, nodeId = settings.nodes[0]?.id ?? '') =>
      createCsiDriver((method, request, options) =>
        incarnation.pass(sendCall(incarnation, nodeId, method, request, options)),
      ),
    heal() {
      Object.assign(faults, { loseRequest: 0, loseReply: 0, refuse: 0, slow: 0 })
      script.setRules([])
      script.release()
      instance.crashRate = 0
      instance.start()
    },
  }
  return driver
}

interface Topology {
  readonly segments: Record<string, string>
}

interface ControllerRequest {
  readonly volumeId?: string
  readonly name?: string
  readonly accessibleTopology?: Topology
  readonly accessibilityRequirements?: {
    readonly requisite: readonly Topology[]
    readonly preferred: readonly Topology[]
  }
}

interface ModifyRequest {
  readonly volumeId: string
  readonly mutableParameters: Readonly<Record<string, string>>
}

/** Removes everything that is staged or mounted on a node, as a power cut does. */
export function clearNode(state: FakeState, nodeId: string): void {
  for (const volume of Object.values(state.volumes)) delete volume.onNodes[nodeId]
}

/** The abort reason of every ended call, created once because an error per call would be costly. */
const CALL_ENDED = new Error('the call is over')

interface OpenCall {
  readonly incarnation: Incarnation
  readonly endController: AbortController
  fail(code: CsiFailureCode, message: string): void
}

type AnyCall = (request: Message, call: { readonly signal: AbortSignal }) => Promise<object>

function serviceOf(driver: FakeDriver, nodeId: string, method: DescMethod): AnyCall {
  const services = { Identity: driver.identity, Controller: driver.controller, Node: driver.node(nodeId) }
  return (services[method.parent.name as keyof typeof services] as unknown as Record<string, AnyCall>)[
    method.localName
  ]!
}
