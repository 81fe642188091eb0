// Everything a process does to the world outside it, one after the other and by name: writes to the server, calls of
// the driver. Whoever made the list may strike right before and right after each of them.
// Events and leases are left out: nobody's data depends on them.
import type { Message } from '@bufbuild/protobuf'
import type { Kind } from '../api/kind.ts'
import { eventKind } from '../api/kinds/event/event.ts'
import { leaseKind } from '../api/kinds/lease/lease.ts'
import { unavailable } from '../api/status-error.ts'
import { type Client, type CommitWrite, keyOfObject, keyOfRef } from '../client/index.ts'
import { callDriver } from '../csi/driver.ts'
import { type CsiDriver, CsiError, createCsiDriver } from '../csi/index.ts'
import type { Life } from './process.ts'

export interface Effect {
  /** Counted from 1, over all processes. */
  readonly number: number
  /** The process. */
  readonly by: string
  readonly on: 'server' | 'driver' | 'plugin'
  /** `patch claim shop/a (intent)`, `CreateVolume pvc-…` */
  readonly what: string
}

export interface Strike {
  before?(effect: Effect): void
  /** It is carried out, or refused. Says whether its answer still arrives. */
  after?(effect: Effect): 'answered' | 'answer lost'
}

export interface Effects {
  readonly all: readonly Effect[]
  clientOf(process: EffectfulLife, client: Client): Client
  driverOf(process: EffectfulLife, driver: CsiDriver): CsiDriver
  /** Any other effect. */
  around<T>(process: EffectfulLife, effect: Pick<Effect, 'on' | 'what'>, act: () => Promise<T>): Promise<T>
}

export interface EffectfulLife extends Pick<Life, 'alive'> {
  readonly name: string
}

export function createEffects(strike: Strike = {}, note: (effect: Effect) => void = () => {}): Effects {
  const all: Effect[] = []

  async function around<T>(
    process: EffectfulLife,
    { on, what }: Pick<Effect, 'on' | 'what'>,
    act: () => Promise<T>,
  ): Promise<T> {
    const effect: Effect = { number: all.length + 1, by: process.name, on, what }
    all.push(effect)
    note(effect)
    strike.before?.(effect)
    if (!process.alive) return never()
    const settle = await act().then(
      (value) => () => value,
      (error: unknown) => () => {
        throw error
      },
    )
    const answer = strike.after?.(effect)
    if (!process.alive) return never()
    if (answer === 'answer lost') throw connectionReset(on)
    return settle()
  }

  return {
    all,
    around,
    clientOf(process, client) {
      const write = <T>(kind: Kind, what: string, act: () => Promise<T>): Promise<T> =>
        isChatter(kind) ? act() : around(process, { on: 'server', what }, act)
      return {
        ...client,
        create: (kind, object, options) =>
          write(kind, `create ${nounOf(kind)} ${keyOfObject(object)}`, () => client.create(kind, object, options)),
        update: (kind, object, options) =>
          write(kind, `update ${nounOf(kind)} ${keyOfObject(object)}`, () => client.update(kind, object, options)),
        patch: (kind, ref, patch, options) =>
          write(kind, patchText(kind, keyOfRef(ref), patch.body, options?.subresource), () =>
            client.patch(kind, ref, patch, options),
          ),
        delete: (kind, ref, request) =>
          write(kind, `delete ${nounOf(kind)} ${keyOfRef(ref)}`, () => client.delete(kind, ref, request)),
        commit: (writes, options) =>
          around(process, { on: 'server', what: writes.map(textOf).join(' + ') }, () => client.commit(writes, options)),
      }
    },
    driverOf: (process, driver) =>
      createCsiDriver((method, request, options) => {
        const call = () => callDriver(driver, method, request, options)
        const about = subjectOf(request)
        return about ? around(process, { on: 'driver', what: `${method.name} ${about}` }, call) : call()
      }),
  }
}

/** A process that died in the middle of something waits for its end for ever. */
const never = <T>(): Promise<T> => new Promise(() => {})

const connectionReset = (on: Effect['on']): Error =>
  on === 'driver' ? new CsiError('UNAVAILABLE', 'the connection was reset') : unavailable('the connection was reset')

const isChatter = (kind: Kind): boolean => kind === (eventKind as Kind) || kind === (leaseKind as Kind)

const NOUNS: Readonly<Record<string, string>> = { PersistentVolumeClaim: 'claim', PersistentVolume: 'volume' }
const nounOf = ({ kind }: Kind): string => NOUNS[kind] ?? kind

function textOf(write: CommitWrite): string {
  switch (write.do) {
    case 'create':
    case 'update':
      return `${write.do} ${nounOf(write.kind)} ${keyOfObject(write.object)}`
    case 'patch':
      return patchText(write.kind, keyOfRef(write.ref), write.patch.body, write.subresource)
    case 'delete':
      return `delete ${nounOf(write.kind)} ${keyOfRef(write.ref)}`
  }
}

function patchText(kind: Kind, key: string, body: object, subresource = ''): string {
  return `patch ${nounOf(kind)} ${key} (${subresource || changedParts(body).join(', ')})`
}

/** The fields a patch names: `claimRef`, `finalizers`. */
function changedParts(body: object): string[] {
  const { metadata = {}, spec = {} } = body as { metadata?: object; spec?: object }
  const conditions = ['uid', 'resourceVersion']
  return [...Object.keys(metadata), ...Object.keys(spec)]
    .filter((name) => !conditions.includes(name))
    .map((name) => (name.startsWith('$') ? `without ${name.slice(name.indexOf('/') + 1)}` : name))
}

/** What a call of the driver is about; calls about nothing in particular change nothing. */
function subjectOf(request: Message): string | undefined {
  const { name, volumeId } = request as unknown as { name?: string; volumeId?: string }
  return volumeId || name || undefined
}
