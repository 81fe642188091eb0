// An in-memory CSI driver for tests. It records each call (record.ts), applies the first matching fault rule (script.ts),
// runs the handler on the state in one step, and persists the state before it returns. It runs behind a socket
// (fake-driver-process.ts), in the simulator, or in the process of a test.
import type { DescMethod, DescService, Message } from '@bufbuild/protobuf'
import type { Clock } from '../../base/clock.ts'
import type { ServiceHandlers } from '../driver.ts'
import { CsiError } from '../errors.ts'
import { Controller, Identity, Node } from '../gen/csi_pb.js'
import { attachmentHandlers } from './attachments.ts'
import { capabilityHandlers, identityHandlers } from './identity.ts'
import { checkRequest, type FakeTargets, fail, type Handlers, type Model, type Overrides } from './model.ts'
import { nodeHandlers } from './node-service.ts'
import { freezeCapacity, unfreezeCapacity } from './pools.ts'
import { createRecord, type FakeRecord } from './record.ts'
import { createScript, type Script } from './script.ts'
import { type FakeSettings, fakeSettings } from './settings.ts'
import { snapshotHandlers } from './snapshots.ts'
import { emptyState, type FakeState } from './state.ts'
import { findVolumeByName } from './state-index.ts'
import { volumeHandlers } from './volumes.ts'

export interface FakeDriverOptions {
  readonly clock: Pick<Clock, 'nowMs' | 'sleep'>
  readonly settings?: FakeSettings
  /** The volumes and snapshots. Passing the state of another fake driver simulates a restart of that driver. */
  readonly state?: FakeState
  readonly record?: FakeRecord
  readonly script?: Script
  /** Where target paths are created. Default: nowhere, paths are only recorded. */
  readonly targets?: FakeTargets
  /** Called with the state before the return of every call that may have changed it. */
  readonly persist?: (state: FakeState) => void
  /** Called when a rule crashes the driver. The call that matched the rule never returns. */
  readonly onCrash?: () => void
}

export interface FakeDriver {
  readonly identity: ServiceHandlers<typeof Identity>
  readonly controller: ServiceHandlers<typeof Controller>
  /** Returns the node service of one node. */
  node(nodeId: string): ServiceHandlers<typeof Node>
  readonly settings: FakeSettings
  readonly state: FakeState
  readonly record: FakeRecord
  readonly script: Script
  /** Makes GetCapacity return the current values until unfreezeCapacity(). */
  freezeCapacity(): void
  unfreezeCapacity(): void
}

export function createFakeDriver(options: FakeDriverOptions): FakeDriver {
  const { clock, settings = fakeSettings(), state = emptyState(), targets, persist, onCrash } = options
  const { record = createRecord(), script = createScript() } = options
  const model: Model = { settings, state, clock, ...(targets ? { targets } : {}) }

  async function handleCall(
    method: DescMethod,
    request: Message,
    signal: AbortSignal,
    scope: string,
    handler: AnyHandler,
  ) {
    const subject = subjectOf(state, method, request)
    const isLocked = subject !== undefined && !READ_ONLY_METHODS.has(method.name)
    const callHandle = record.begin({
      method,
      request,
      volume: subject?.name,
      lock: isLocked ? `${scope} ${subject.name}` : undefined,
      signal,
      nowMs: clock.nowMs(),
    })
    try {
      if (callHandle.isBusy && settings.whenBusy === 'abort') {
        fail('ABORTED', `another operation on "${subject?.name}" is in progress`)
      }
      const rule = script.match(method.name, subject ? [subject.name, subject.id] : [])
      const effect = rule?.effect
      if (rule?.afterMs) await clock.sleep(rule.afterMs)
      if (effect?.do === 'hang') await script.hang()
      if (effect?.do === 'fail') fail(effect.code, effect.message ?? `${method.name} failed because of a fault rule`)
      if (effect?.do === 'crash' && effect.when === 'before') return await crash()

      checkRequest(model, method, request)
      const response = handler(model, request, effect?.do === 'overrideSize' ? { sizeBytes: effect.bytes } : {})
      if (isLocked) persist?.(state)
      callHandle.markHandled()

      if (effect?.do === 'crash') return await crash()
      if (effect?.do === 'loseReply' && effect.as === 'hang') await script.hang()
      if (effect?.do === 'loseReply') fail('UNAVAILABLE', 'the connection was lost because of a fault rule')
      callHandle.end('OK', clock.nowMs())
      return response
    } catch (error) {
      callHandle.end(error instanceof CsiError ? error.codeName : 'INTERNAL', clock.nowMs())
      throw error
    }
  }

  const crash = (): Promise<never> => {
    record.endAllCalls()
    onCrash?.()
    return new Promise(() => {})
  }

  const createHandlers = (service: DescService, scope: string, handlers: Record<string, AnyHandler>) =>
    Object.fromEntries(
      service.methods.map((method) => [
        method.localName,
        (request: Message, { signal }: { signal: AbortSignal }) =>
          handleCall(method, request, signal, scope, handlers[method.localName]!),
      ]),
    ) as never

  return {
    identity: createHandlers(Identity, 'identity', identityHandlers as never),
    controller: createHandlers(Controller, 'controller', CONTROLLER_HANDLERS as never),
    node: (nodeId) => createHandlers(Node, `node ${nodeId}`, nodeHandlers(nodeId) as never),
    settings,
    state,
    record,
    script,
    freezeCapacity: () => freezeCapacity(model),
    unfreezeCapacity: () => unfreezeCapacity(model),
  }
}

type AnyHandler = (model: Model, request: Message, overrides: Overrides) => Record<string, unknown>

const CONTROLLER_HANDLERS: Handlers<typeof Controller> = {
  ...capabilityHandlers,
  ...volumeHandlers,
  ...attachmentHandlers,
  ...snapshotHandlers,
}

/** Methods for a volume or snapshot that do not change the state and may run concurrently with any other. */
const READ_ONLY_METHODS: ReadonlySet<string> = new Set([
  'ValidateVolumeCapabilities',
  'ControllerGetVolume',
  'ListSnapshots',
  'GetSnapshot',
  'NodeGetVolumeStats',
])

/** Returns the volume or snapshot that a call operates on. An id is resolved to the name, which is the key of the lock. */
function subjectOf(state: FakeState, method: DescMethod, request: Message): { name: string; id: string } | undefined {
  const { volumeId, sourceVolumeId, snapshotId, name } = request as unknown as Record<string, string | undefined>
  const id = volumeId || (method.name === 'CreateSnapshot' ? sourceVolumeId : undefined)
  if (id) return { id, name: state.volumes[id]?.name ?? id }
  if (snapshotId) return { id: snapshotId, name: state.snapshots[snapshotId]?.name ?? snapshotId }
  if (name) return { id: findVolumeByName(state, name)?.id ?? '', name }
  return undefined
}
