// A CSI driver that is all model: no sockets, no disks, no timers of its own. Each call is recorded, meets the script,
// takes one step on the state, and is kept before it is answered. The same driver runs behind a socket
// (fake-driver-process.ts) and in the simulator (sim/driver.ts).
import type { DescMethod, DescService, Message } from '@bufbuild/protobuf'
import type { Clock } from '../../base/clock.ts'
import type { Callee } from '../driver.ts'
import { CsiError } from '../errors.ts'
import { Controller, Identity, Node } from '../gen/csi_pb.js'
import { attachmentActs } from './attachments.ts'
import { capabilityActs, identityActs } from './identity.ts'
import { type Acts, checkRequest, type Model, refuse, type Twist } from './model.ts'
import { nodeActs } from './on-node.ts'
import { holdCapacity, showCapacity } from './pools.ts'
import { createRecord, type FakeRecord } from './record.ts'
import { createScript, type Script } from './script.ts'
import { type FakeSettings, fakeSettings } from './settings.ts'
import { snapshotActs } from './snapshots.ts'
import { emptyState, type FakeState } from './state.ts'
import { volumeNamed } from './tally.ts'
import { volumeActs } from './volumes.ts'

export interface FakeDriverOptions {
  readonly clock: Pick<Clock, 'nowMs' | 'sleep'>
  readonly settings?: FakeSettings
  /** What the storage holds. Handing on the state of another driver makes this one its next life. */
  readonly state?: FakeState
  readonly record?: FakeRecord
  readonly script?: Script
  /** Called before a call is answered that may have changed the state. */
  readonly keep?: (state: FakeState) => void
  /** The script wants the driver dead. Calls under way never end. */
  readonly onCrash?: () => void
}

export interface FakeDriver {
  readonly identity: Callee<typeof Identity>
  readonly controller: Callee<typeof Controller>
  /** The driver's part on a node. */
  node(nodeId: string): Callee<typeof Node>
  readonly settings: FakeSettings
  readonly state: FakeState
  readonly record: FakeRecord
  readonly script: Script
  /** GetCapacity keeps reporting what is free now, until told to show again. */
  holdCapacity(): void
  showCapacity(): void
}

export function createFakeDriver(options: FakeDriverOptions): FakeDriver {
  const { clock, settings = fakeSettings(), state = emptyState(), keep, onCrash } = options
  const { record = createRecord(), script = createScript() } = options
  const model: Model = { settings, state, clock }

  async function answer(method: DescMethod, request: Message, signal: AbortSignal, scope: string, act: AnyAct) {
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
        refuse('ABORTED', `another operation on "${subject?.name}" is under way`)
      }
      const rule = script.take(method.name, subject ? [subject.name, subject.id] : [])
      const effect = rule?.effect
      if (rule?.afterMs) await clock.sleep(rule.afterMs)
      if (effect?.do === 'hang') await script.hang()
      if (effect?.do === 'fail') refuse(effect.code, effect.message ?? `${method.name} fails, as scripted`)
      if (effect?.do === 'crash' && effect.when === 'before') return await die()

      checkRequest(model, method, request)
      const reply = act(model, request, effect?.do === 'makeBytes' ? { makeBytes: effect.bytes } : {})
      if (isLocked) keep?.(state)
      ticket.worked()

      if (effect?.do === 'crash') return await die()
      if (effect?.do === 'loseReply' && effect.as === 'hang') await script.hang()
      if (effect?.do === 'loseReply') refuse('UNAVAILABLE', 'the connection broke, as scripted')
      ticket.ended('OK', clock.nowMs())
      return reply
    } catch (error) {
      ticket.ended(error instanceof CsiError ? error.codeName : 'INTERNAL', clock.nowMs())
      throw error
    }
  }

  const die = (): Promise<never> => {
    record.died()
    onCrash?.()
    return new Promise(() => {})
  }

  const calleeOf = (service: DescService, scope: string, acts: Record<string, AnyAct>) =>
    Object.fromEntries(
      service.methods.map((method) => [
        method.localName,
        (request: Message, { signal }: { signal: AbortSignal }) =>
          answer(method, request, signal, scope, acts[method.localName]!),
      ]),
    ) as never

  return {
    identity: calleeOf(Identity, 'identity', identityActs as never),
    controller: calleeOf(Controller, 'controller', CONTROLLER_ACTS as never),
    node: (nodeId) => calleeOf(Node, `node ${nodeId}`, nodeActs(nodeId) as never),
    settings,
    state,
    record,
    script,
    holdCapacity: () => holdCapacity(model),
    showCapacity: () => showCapacity(model),
  }
}

type AnyAct = (model: Model, request: Message, twist: Twist) => Record<string, unknown>

const CONTROLLER_ACTS: Acts<typeof Controller> = {
  ...capabilityActs,
  ...volumeActs,
  ...attachmentActs,
  ...snapshotActs,
}

/** They change nothing, and may run beside anything. */
const READS: ReadonlySet<string> = new Set([
  'ValidateVolumeCapabilities',
  'ControllerGetVolume',
  'ListSnapshots',
  'GetSnapshot',
  'NodeGetVolumeStats',
])

/** What a call is about. A volume is known by its name also in calls that give its id. */
function subjectOf(state: FakeState, method: DescMethod, request: Message): { name: string; id: string } | undefined {
  const { volumeId, sourceVolumeId, snapshotId, name } = request as unknown as Record<string, string | undefined>
  const id = volumeId || (method.name === 'CreateSnapshot' ? sourceVolumeId : undefined)
  if (id) return { id, name: state.volumes[id]?.name ?? id }
  if (snapshotId) return { id: snapshotId, name: state.snapshots[snapshotId]?.name ?? snapshotId }
  if (name) return { id: volumeNamed(state, name)?.id ?? '', name }
  return undefined
}
