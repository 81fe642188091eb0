// Numbers and names the external effects of processes: writes to the server, and calls to a driver or plugin. Hooks run
// right before and right after each effect. Single writes of events and leases are not counted, because no data depends on them;
// the journal of intents is the exception.
import type { Message } from '@bufbuild/protobuf'
import type { Kind } from '../../api/kind.ts'
import { eventKind } from '../../api/kinds/event/event.ts'
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import { unavailable } from '../../api/status-error.ts'
import { type Client, type CommitWrite, keyOfObject, keyOfRef } from '../../client/index.ts'
import { INTENTS_ANNOTATION } from '../../controllers/provisioning/intent-journal.ts'
import { callDriver } from '../../csi/driver.ts'
import { type CsiDriver, CsiError, createCsiDriver } from '../../csi/index.ts'
import type { Incarnation } from '../environment/process.ts'

export interface Effect {
  /** Counted from 1, over all processes. */
  readonly number: number
  /** The process that causes the effect. */
  readonly process: string
  readonly target: 'server' | 'driver' | 'plugin'
  /** `patch claim shop/a (finalizers)`, `CreateVolume pvc-…` */
  readonly description: string
}

export interface EffectHooks {
  before?(effect: Effect): void
  /** Called when the effect was applied or rejected. Returns whether the response still arrives. */
  after?(effect: Effect): 'response arrives' | 'response lost'
}

export interface Effects {
  readonly list: readonly Effect[]
  clientOf(process: EffectSource, client: Client): Client
  driverOf(process: EffectSource, driver: CsiDriver): CsiDriver
  /** Performs any other effect. */
  perform<T>(
    process: EffectSource,
    effect: Pick<Effect, 'target' | 'description'>,
    action: () => Promise<T>,
  ): Promise<T>
}

interface EffectSource extends Pick<Incarnation, 'alive'> {
  readonly name: string
}

export function createEffects(hooks: EffectHooks = {}, note: (effect: Effect) => void = () => {}): Effects {
  const list: Effect[] = []

  async function perform<T>(
    process: EffectSource,
    { target, description }: Pick<Effect, 'target' | 'description'>,
    action: () => Promise<T>,
  ): Promise<T> {
    const effect: Effect = { number: list.length + 1, process: process.name, target, description }
    list.push(effect)
    note(effect)
    hooks.before?.(effect)
    if (!process.alive) return neverSettle()
    const settle = await action().then(
      (value) => () => value,
      (error: unknown) => () => {
        throw error
      },
    )
    const delivery = hooks.after?.(effect)
    if (!process.alive) return neverSettle()
    if (delivery === 'response lost') throw connectionReset(target)
    return settle()
  }

  return {
    list,
    perform,
    clientOf(process, client) {
      const write = <T>(kind: Kind, description: string, action: () => Promise<T>, isCounted = hasEffect(kind)) =>
        isCounted ? perform(process, { target: 'server', description }, action) : action()
      return {
        ...client,
        create: (kind, object, options) =>
          write(kind, `create ${nounOf(kind)} ${keyOfObject(object)}`, () => client.create(kind, object, options)),
        update: (kind, object, options) =>
          write(
            kind,
            `update ${nounOf(kind)} ${keyOfObject(object)}`,
            () => client.update(kind, object, options),
            hasEffect(kind) || object.metadata.annotations?.[INTENTS_ANNOTATION] !== undefined,
          ),
        patch: (kind, ref, patch, options) =>
          write(kind, formatPatch(kind, keyOfRef(ref), patch.body, options?.subresource), () =>
            client.patch(kind, ref, patch, options),
          ),
        delete: (kind, ref, request) =>
          write(kind, `delete ${nounOf(kind)} ${keyOfRef(ref)}`, () => client.delete(kind, ref, request)),
        commit: (writes, options) =>
          perform(process, { target: 'server', description: writes.map(describeWrite).join(' + ') }, () =>
            client.commit(writes, options),
          ),
      }
    },
    driverOf: (process, driver) =>
      createCsiDriver((method, request, options) => {
        const call = () => callDriver(driver, method, request, options)
        const subject = subjectOf(request)
        return subject ? perform(process, { target: 'driver', description: `${method.name} ${subject}` }, call) : call()
      }),
  }
}

/** A crashed process never continues after the await it was in. */
const neverSettle = <T>(): Promise<T> => new Promise(() => {})

const connectionReset = (target: Effect['target']): Error =>
  target === 'driver'
    ? new CsiError('UNAVAILABLE', 'the connection was reset')
    : unavailable('the connection was reset')

const hasEffect = (kind: Kind): boolean => kind !== (eventKind as Kind) && kind !== (leaseKind as Kind)

const NOUNS: Readonly<Record<string, string>> = { PersistentVolumeClaim: 'claim', PersistentVolume: 'volume' }
const nounOf = ({ kind }: Kind): string => NOUNS[kind] ?? kind

function describeWrite(write: CommitWrite): string {
  switch (write.do) {
    case 'create':
    case 'update':
      return `${write.do} ${nounOf(write.kind)} ${keyOfObject(write.object)}`
    case 'patch':
      return formatPatch(write.kind, keyOfRef(write.ref), write.patch.body, write.subresource)
    case 'delete':
      return `delete ${nounOf(write.kind)} ${keyOfRef(write.ref)}`
  }
}

function formatPatch(kind: Kind, key: string, body: object, subresource = ''): string {
  return `patch ${nounOf(kind)} ${key} (${subresource || listChangedFields(body).join(', ')})`
}

/** Returns the fields that a patch changes: `claimRef`, `finalizers`. */
function listChangedFields(body: object): string[] {
  const { metadata = {}, spec = {} } = body as { metadata?: object; spec?: object }
  const preconditions = ['uid', 'resourceVersion']
  return [...Object.keys(metadata), ...Object.keys(spec)]
    .filter((name) => !preconditions.includes(name))
    .map((name) => (name.startsWith('$') ? `without ${name.slice(name.indexOf('/') + 1)}` : name))
}

/** Returns the volume that a call concerns. The calls of the simulation without a volume change nothing. */
function subjectOf(request: Message): string | undefined {
  const { name, volumeId } = request as unknown as { name?: string; volumeId?: string }
  return volumeId || name || undefined
}
