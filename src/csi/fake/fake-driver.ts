// An in-memory CSI driver for tests, without sockets, disks or timers. For each call it records the call (record.ts),
// applies the first matching fault rule (script.ts), runs the handler on the state in one step, and persists the state
// before it returns. It runs behind a socket (fake-driver-process.ts) and in the simulator (sim/driver.ts).
import type { DescMethod, DescService, Message } from '@bufbuild/protobuf'
import type { Clock } from '../../base/clock.ts'
import type { ServiceHandlers } from '../driver.ts'
import { CsiError } from '../errors.ts'
import { Controller, Identity, Node } from '../gen/csi_pb.js'
import { attachmentHandlers } from './attachments.ts'
import { capabilityHandlers, identityHandlers } from './identity.ts'
import { checkRequest, fail, type Handlers, type Model, type Overrides } from './model.ts'
import { nodeHandlers } from './node-service.ts'
import { freezeCapacity, unfreezeCapacity } from './pools.ts'
import { createRecord, type FakeRecord } from './record.ts'
import { createScript, type Script } from './script.ts'
import { type FakeSettings, fakeSettings } from './settings.ts'
import { snapshotHandlers } from './snapshots.ts'
import { emptyState, type FakeState } from './state.ts'
import { volumeByName } from './state-index.ts'
import { volumeHandlers } from './volumes.ts'

export interface FakeDriverOptions {
  readonly clock: Pick<Clock, 'nowMs' | 'sleep'>
  readonly settings?: FakeSettings
  /** The volumes and snapshots. Passing the state of another fake driver simulates a restart of that driver. */
  readonly state?: FakeState
  readonly record?: FakeRecord
  readonly script?: Script
  /** Called with the state before a call that may have changed it returns. */
  readonly persist?: (state: FakeState) => void
  /** Called when a rule crashes the driver. Calls in flight never return. */
  readonly onCrash?: () => void
}

export interface FakeDriver {
  readonly identity: ServiceHandlers<typeof Identity>
  readonly controller: ServiceHandlers<typeof Controller>
  /** The node service on one node. */
  node(nodeId: string): ServiceHandlers<typeof Node>
  readonly settings: FakeSettings
  readonly state: FakeState
  readonly record: FakeRecord
  readonly script: Script
  /** GetCapacity keeps returning the current values until unfreezeCapacity(). */
  freezeCapacity(): void
  unfreezeCapacity(): void
}

export function createFakeDriver(options: FakeDriverOptions): FakeDriver {
  const { clock, settings = fakeSettings(), state = emptyState(), persist, onCrash } = options
  const { record = createRecord(), script = createScript() } = options
  const model: Model = { settings, state, clock }

  async function answer(method: DescMethod, request: Message, signal: AbortSignal, scope: string, act: AnyHandler) {
    const subject = subjectOf(state, method, request)
    const isLocked = subject !== undefined && !READS.has(method.name)
    const ticket = record.begin({
      method,
      request,
      volume: subject?.name,
      lock: isLocked ? `${scope} ${subject.name}` : undefined,
      signal,
      nowMs: clock.nowMs(),
    })
    try {
      if (ticket.isBusy && settings.whenBusy === 'abort') {
        fail('ABORTED', `another operation on "${subject?.name}" is in progress`)
      }
      const rule = script.match(method.name, subject ? [subject.name, subject.id] : [])
      const effect = rule?.effect
      if (rule?.afterMs) await clock.sleep(rule.afterMs)
      if (effect?.do === 'hang') await script.hang()
      if (effect?.do === 'fail') fail(effect.code, effect.message ?? `${method.name} fails, as scripted`)
      if (effect?.do === 'crash' && effect.when === 'before') return await die()

      checkRequest(model, method, request)
      const reply = act(model, request, effect?.do === 'overrideSize' ? { sizeBytes: effect.bytes } : {})
      if (isLocked) persist?.(state)
      ticket.workDone()

      if (effect?.do === 'crash') return await die()
      if (effect?.do === 'loseReply' && effect.as === 'hang') await script.hang()
      if (effect?.do === 'loseReply') fail('UNAVAILABLE', 'the connection was lost, as scripted')
      ticket.end('OK', clock.nowMs())
      return reply
    } catch (error) {
      ticket.end(error instanceof CsiError ? error.codeName : 'INTERNAL', clock.nowMs())
      throw error
    }
  }

  const die = (): Promise<never> => {
    record.crashed()
    onCrash?.()
    return new Promise(() => {})
  }

  const calleeOf = (service: DescService, scope: string, acts: Record<string, AnyHandler>) =>
    Object.fromEntries(
      service.methods.map((method) => [
        method.localName,
        (request: Message, { signal }: { signal: AbortSignal }) =>
          answer(method, request, signal, scope, acts[method.localName]!),
      ]),
    ) as never

  return {
    identity: calleeOf(Identity, 'identity', identityHandlers as never),
    controller: calleeOf(Controller, 'controller', CONTROLLER_HANDLERS as never),
    node: (nodeId) => calleeOf(Node, `node ${nodeId}`, nodeHandlers(nodeId) as never),
    settings,
    state,
    record,
    script,
    freezeCapacity: () => freezeCapacity(model),
    unfreezeCapacity: () => unfreezeCapacity(model),
  }
}

type AnyHandler = (model: Model, request: Message, twist: Overrides) => Record<string, unknown>

const CONTROLLER_HANDLERS: Handlers<typeof Controller> = {
  ...capabilityHandlers,
  ...volumeHandlers,
  ...attachmentHandlers,
  ...snapshotHandlers,
}

/** Calls that change nothing and may run concurrently with any other. */
const READS: ReadonlySet<string> = new Set([
  'ValidateVolumeCapabilities',
  'ControllerGetVolume',
  'ListSnapshots',
  'GetSnapshot',
  'NodeGetVolumeStats',
])

/** The volume or snapshot that a call operates on. Calls with an id are resolved to the name, the key of the lock. */
function subjectOf(state: FakeState, method: DescMethod, request: Message): { name: string; id: string } | undefined {
  const { volumeId, sourceVolumeId, snapshotId, name } = request as unknown as Record<string, string | undefined>
  const id = volumeId || (method.name === 'CreateSnapshot' ? sourceVolumeId : undefined)
  if (id) return { id, name: state.volumes[id]?.name ?? id }
  if (snapshotId) return { id: snapshotId, name: state.snapshots[snapshotId]?.name ?? snapshotId }
  if (name) return { id: volumeByName(state, name)?.id ?? '', name }
  return undefined
}
